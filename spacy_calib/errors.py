"""Every message of the package, each with a code. An error is one sentence: the thing, what was given, what is wanted, what to do."""

from __future__ import annotations

from pathlib import PurePath


class CalibError(ValueError):
    """A fault that the user can mend. `code` names the message, `str()` is the sentence that the CLI prints; `pipe` is the name of the
    pipe whose saved state cannot be read, "" for any other fault.
    """

    def __init__(self, code: str, message: str, pipe: str = ""):
        super().__init__(f"[{code}] {message}")
        self.code = code
        self.message = message
        self.pipe = pipe

    def __reduce__(self):
        return CalibError, (self.code, self.message, self.pipe)


# The saved state of a pipe cannot be read: such a pipe can only be fitted anew.
UNREADABLE = ("C010", "C011", "C012")

_MESSAGES = {
    # Arrays and settings
    "C001": "{name} must be {wanted}, but {given} was given.",
    "C002": "{what} needs one {first} for every {second}, but got {n_first} and {n_second}; pass arrays of equal length.",
    "C003": "Cannot fit a {what} on no pairs; give it data with scores at or above {threshold}.",
    "C004": "{what} is not fitted yet; call fit() before predict().",
    "C005": "Only {n_pairs} pairs reach the threshold {threshold}, which is fewer than the {n_bins} bins that they are sorted into; give more data, or fewer bins (--bins).",
    "C006": "Only {n_pairs} pairs were given to fit on, but {what} needs {wanted}; give more data or ask for fewer bins.",
    "C007": "Choosing a method by cross-validation needs at least 2 documents with pairs, but {n} was given; name a --method, or give more documents.",
    "C070": "The grouping {name} looks at scores, not only at tags; call its with_pairs(pairs), and what that gives with labels and counts.",
    "C071": "Cannot fit {what} on no tokens with gold; give it annotated data.",
    "C072": "The setting {setting} is about the one right label of a {unit}, but of {layer} a {unit} may have several; leave {setting} out.",
    "C185": "The short name {short!r} in the registry {registry} must belong to one entry, but {first} and {second} both have it; give one of their classes another `short`, or none.",
    "C500": "What is registered as '{given}' in {registry} cannot be imported ({why}); mend or uninstall the package that registers it.",
    # Context
    "C201": "The feature {given!r} of the context is not registered; registered are: {known}. If it is your own, give its file with --code.",
    "C202": "The feature function '{name}' gave an array of shape {given} for {n} tokens; return one of shape ({n},), or ({n}, k) for k numbers a token, with the tokens of all "
    "Docs one after the other.",
    "C203": "The feature function '{name}' gave {given} for the Doc that begins {text!r}; return finite numbers only.",
    "C204": "The feature '{name}' gave {given} numbers a token, but {wanted} when the pipe was fitted; fit the pipe again.",
    "C205": "The feature '{name}' is registered as a function that makes a {given}; register a function (docs) -> array.",
    "C206": "The feature function '{name}' failed: {why}; mend it, or take it out of the context's features.",
    # Saved state
    "C010": "The calibration data of pipe '{name}' in {path} cannot be read ({why}); fit the pipe again or copy the folder anew.",
    "C011": "The calibration data of pipe '{name}' has format version {given}, but this spacy-calib reads up to version {wanted}; "
    "upgrade spacy-calib or fit the pipe again.",
    "C012": "The calibration data of pipe '{name}' names '{given}', which is not installed; install the package that registers it.",
    # Labels and components
    "C020": "The labels of component '{component}' were removed or reordered since '{name}' was fitted ({detail}); load the pipeline with exclude=['{name}'], save it, and fit that.",
    "C021": "The pipeline has no component '{component}'; it has: {available}. Name one of them with --component.",
    "C022": "Component '{component}' ({kind}) cannot be calibrated; calib reads: {supported}; in this pipeline: {readable}. Of scores that a component leaves "
    "on the Doc say where they are, by --source spans, tokens or docs (SpanScores.v1, TokenScores.v1, DocScores.v1) and --score.",
    "C317": "The pipeline has no component '{component}'; of those that it has, calib can read: {readable}. Name one of them with --component.",
    "C318": "The pipeline has no component '{component}', and calib can read none of those that it has ({available}); it reads: {supported}.",
    "C023": "Component '{component}' has no labels or is not trained; train it before you calibrate it.",
    "C024": "The logits of component '{component}' hold NaN or infinite values in the document that begins {text!r}; "
    "check the model's weights, nothing was calibrated.",
    "C025": "The attribute prefix '{attr}' is already used by {owner}; give this pipe another one (attr in the config, --attr on the command line).",
    "C027": "The pipeline has no fitted calib pipe; it has: {available}. Run `python -m spacy calib fit` first.",
    "C028": "The pipe '{name}' stands before its source '{component}'; put it directly after it.",
    "C035": "The weights of component '{component}' hold NaN or infinite values; train it again, nothing was calibrated.",
    "C130": "{method} calibrated on {n} {rows} loses more than the raw scores on parts of the data held out in turn (log loss {raw:.3f} raw, {calibrated:.3f} "
    "calibrated), so nothing was written; {more}, let --method auto choose, or pass the raw scores through with --method identity.",
    "C131": "Sets that miss at most {alpha:g} of the {rows} are to be made of {n} {rows}, and {least} at least are wanted; give more data or ask for less with "
    "--sets, up from {reached:g}.",
    "C120": "The pipe '{name}' cannot read this pipeline: {why}; or fit one here with `python -m spacy calib fit`.",
    # Gold data
    "C030": "The data has no gold {layer} annotation for component '{component}'; give data annotated with it.",
    "C031": "None of the {n_tags} gold labels in the data ({unknown}) is known to component '{component}', which knows {known}; check that the data and the model use "
    "the same tagset, or tell what its labels are called in the data (--map {map}).",
    "C151": "Component '{component}' knows none of the labels in the gold, so there is nothing to judge: the gold has {gold}; the component knows {known}. Give gold with the component's labels, or fit with --map.",
    "C261": "The gold Doc that begins {text!r} has several categories with the highest value ({given}), but the categories of this component exclude each other; give each Doc one, or train a textcat_multilabel.",
    "C262": "The categories of component '{component}' in doc.cats have {given} on the Doc that begins {text!r}, but probabilities lie in [0, 1]; leave doc.cats as the component set it.",
    "C263": "None of the gold categories in the data ({unknown}) is one of component '{component}', which knows {known}; check that the data and the model use the same categories, or tell what "
    "its labels are called in the data (--map LABEL=GOLD).",
    "C264": "The setting {setting} looks at tokens, but component '{component}' gives probabilities of whole documents; leave {setting} out.",
    "C265": "The pipe '{name}' calibrates '{component}', whose labels are those of {own}s, so that there are no {given}s to show; leave --unit out.",
    "C032": "No document in the data could be scored by component '{component}': {why}.",
    "C033": "The model of component '{component}' describes a state by {given} tokens, but calib decodes models with {wanted} (spaCy's TransitionBasedParser for ner).",
    "C034": "Component '{component}' cannot be calibrated where it stands: {why}.",
    # doc_tensor
    "C111": "The label {label!r} cannot be kept in a config, which takes '${{' for the beginning of a reference; give the label another name.",
    "C112": "The attribute prefix '{attr}' cannot be used ({why}); give this pipe another one (attr in the config, --attr on the command line).",
    "C113": "A calib pipe cannot be called {name!r} ({why}); give it another name (name in add_pipe, [components.NAME] in a config, --attr on the command line).",
    "C040": "The array at {where} has shape {given}, but {wanted} is wanted: one row per token, one column per label.",
    "C041": "The array at {where} holds {given}, but probabilities lie in [0, 1]; apply a softmax first.",
    # Documents of the source
    "C160": "The Doc that begins {text!r} in {path} names no document: its user data has {given} under '{key}', but a text or a number is wanted; "
    "give another --doc-key, and save the file with DocBin(store_user_data=True).",
    "C161": "{path} is not a CoNLL-U file that spaCy can read ({why}); save it as UTF-8, with ten columns between tabs.",
    "C166": "The rows of the array at {where} sum to {low} up to {high}, but the probabilities of a token sum to 1; give a column for every label, "
    "or set subprobabilities = true in the source if small ones were left out (they may not sum to more).",
    "C167": "The setting labels names {path}, which holds no list of labels ({why}); give a .json file with a list, or a .txt file with one label on each line.",
    # Label schemes
    "C162": "The map {given} cannot be used ({why}); write PERSON=PER,GPE=LOC (a label of the component, the label in the data, nothing for one without), "
    "or name a .json file with an object or a .tsv file with two columns.",
    "C163": "The labels of this component cannot be mapped: it gives {layer}, not labels of a scheme; leave out --map.",
    "C164": "{share} % of the gold labels are unknown to component '{component}' (mostly {unknown}; it knows {known}), which says {pairs}; "
    "tell what its labels are called in the data (--map {map}), or let them count as misses with --allow-unknown.",
    "C165": "The map names '{label}', which is no label of component '{component}'; its labels are {known}.",
    # Command line
    "C050": "Cannot load the pipeline '{model}': {why}",
    "C051": "Data not found: {path}. Give a file, or a folder of files, that exists.",
    "C052": "The data in {path} holds no documents; give some with text, where gold is needed a .spacy file made with `spacy convert`.",
    "C053": "{path} is not a readable DocBin ({why}); make it with `spacy convert`.",
    "C054": "The output {path} exists already; choose another path or add --force.",
    "C055": "Cannot write the output {path}: {why}",
    "C056": "Option {option} must be {wanted}, but {given} was given.",
    "C058": "Cannot read the config {path}: {why}",
    "C059": "The pipeline has a component '{name}' already ({owner}); give the new pipe another name with --attr.",
    "C114": "The config {path} has a dollar sign, which begins a reference there ({why}); write it twice in a label ($$), or write the labels into a file beside the config, "
    'a .json file with a list or a .txt file with one on each line, and name that: labels = "labels.json".',
    "C073": "{path} holds no texts; give a file or a folder of files that end in {suffixes}.",
    "C074": "Cannot read the texts in {path}: {why}; {wanted}.",
    "C075": "The pipe '{name}' gave {none} of the {n_docs} documents a score: {why}; check that the components it reads are enabled ([nlp] disabled in config.cfg), and that the documents are not empty.",
    "C076": "No {unit} in the data has gold; give annotated data, or leave the comparison out.",
    "C060": "Cannot use GPU {gpu}: {why}",
    "C271": "The model of component '{component}' describes a state by {given} tokens, but calib decodes models with {wanted} (spaCy's TransitionBasedParser for parser).",
    "C272": "Option --event must be {wanted} for component '{component}', but '{given}' was given.",
    "C066": "Option {option} is for entity recognizers, but component '{component}' is a {kind}; leave it out.",
    "C067": "The pipeline {model} has no recognizer made by `spacy calib fit`; it has: {available}.",
    "C062": "Cannot import the code in {path}: {why}",
    "C195": "The setting {setting} of the pipe must be a function of the registry {registry}, but {given!r} is none; registered are: {names}. If it is your own, give its file with --code.",
    "C063": "The settings of the pipe cannot be used: {why}",
    "C170": "{option} is no setting of the pipe '{name}' that is fitted; settings of it begin with {prefix} (--attr names another pipe).",
    "C064": "Presidio is not installed; run `pip install spacy-calib[presidio]`.",
    "C065": "The pipe '{name}' calibrates '{component}', which finds no entities; calibrate ner or spancat (--component).",
    "C307": "There is no share to reach; give --precision (of accepted entities that are right), --recall (of entities that are not missed), or both.",
    "C530": "No cut-off reaches a precision of {precision} % with this confidence{reached}: the pipeline at {path} would accept nothing, so it is not written; ask for less, give more gold, or go on with --allow-empty.",
    "C531": "The pipe '{name}' has no cut-offs that tell which entities are accepted; find them with `spacy calib threshold --precision` and write them with --apply.",
    "C310": "The pipe '{name}' scores the categories of documents (component '{component}'), of which none is outside of all, so that no cut-off bounds what is missed; give --precision.",
    "C308": "The pipe '{name}' knows no probability that a token is outside of all entities (component '{component}' gives none), so that no cut-off bounds what is missed; give --precision.",
    "C309": "The gold in {data} holds no entity with a score, so that nothing tells how many would be missed; give gold with entities.",
    "C068": "The pipeline has no fitted calib pipe with the prefix '{attr}'; its prefixes are: {available}. Name one of them with --attr.",
    "C069": "Component '{name}' is disabled in the pipeline; enable it ([nlp] disabled in config.cfg).",
    "C100": "The output {path} lies in the pipeline {folder}, which is only read; choose a path outside of it.",
    "C101": "Replacing {path} would delete {given}, which this command reads; choose another output.",
    "C102": "The outputs of {first} and {second} would be one ({path}); give each a path of its own.",
    "C105": "There is no `calib {old}` any more; write `calib {new}`.",
    "C103": "Cannot write to the standard output: {why}.",
    "C104": "A picture of {width} by {height} pixels is too large to draw; choose fewer tags, or SVG.",
    # Analysis
    "C061": "Plots need matplotlib, which is not installed; run `pip install spacy-calib[plots]`.",
    # Active learning
    "C090": "The pipe '{name}' knows no tag '{tag}'; it knows: {available}.",
    "C091": "None of the {n} {unit}s in the pool can be chosen: {excluded} are labelled already, and none of the others has a {what}; give more texts.",
    "C092": "Cannot read the texts in {path}: {why}; give a .csv file with a column text, as `spacy calib select` writes it.",
    "C093": "No tags of the pipe '{name}' held together {share} of the gold tokens at the fit or less; name tags with --tag.",
    "C094": "Every {unit} that could be chosen has more words than the {max_words} of --max-words; give a larger budget.",
    # Watching
    "C236": "The pipe '{name}' keeps no record of the documents that it was fitted on (an older spacy-calib fitted it, or on a single document), and there is nothing to compare texts with; run `python -m spacy calib fit` again, on two documents or more.",
    "C237": "The windows belong to another pipe than this one, or to another fit of it; give the pipeline that they were counted with.",
    "C238": "Windows of {given} cannot be added to windows of {wanted}; give windows that were made alike.",
    "C239": "There is no window to read in {where} ({why}); give what `spacy calib watch` or a Monitor wrote.",
    "C240": "The date {given} cannot tell the {every} of a text ({why}); write it as 2026-11-22, with a time behind it or without.",
    "C241": "{path} has no dates: they are read from JSON Lines; give .jsonl files, or leave --by out.",
    "C242": "The text on line {line} of {path} has no date under {key!r} that tells its {every} ({why}); write it as 2026-11-22, with a time behind it or without.",
    "C243": "The windows in {path} were given twice and would count double; name each file once.",
    # Sources
    "C200": "Component '{component}' is claimed by several sources: {sources}; name the one to read it as \"@calib_sources\" of the pipe's source.",
    "C281": "The extension {owner}._.{name} does not exist; register it ({owner}.set_extension) in the code of its component or in a file given with --code, or name "
    "another one in the source (score).",
    "C282": "The score at {where} of {what} is {given}, but a number in [0, 1] is wanted, or None where there is none; let the component write that, or a function of the source "
    "(score) make it.",
    "C283": "There are {given} scores at {where}, but {wanted} in the document that begins {text!r} are wanted; write one for each, None where there is none.",
    "C284": "The source knows none of the labels with a score at {where} ({found}; it knows {known}); name the labels that the component gives, or leave out labels.",
    "C285": "Nothing in the fit data has a score at {where}, so there is nothing to learn; check the component that leaves the scores, and the settings of the source.",
    "C286": "What {where} gave is {given}, but pairs (span, score) are wanted, of spans of the Doc that it got; mend the function.",
    "C288": "The scores at {where} of {what} sum to {given}, but labels that exclude each other share 1; let the component write probabilities, or (of documents) set "
    "exclusive = false in the source.",
    "C287": "The setting {setting} weighs the labels of a token against each other, but {where} has the score of one label alone; leave {setting} out.",
    # Adaptation
    "C216": "The pipe '{name}' is not fitted, so there is nothing to adapt; fit it first with `python -m spacy calib fit`.",
    # Metrics
    "C190": "The metric '{name}' has the short name '{short}', which is that of another figure of the calibration table; give it another one (the attribute `short`).",
    # Accuracy from few labels
    "C226": "An interval from labelled documents needs two of them at least, but --gold has {n} with gold (by {by}); label another one, picked at random.",
    # Report
    # Arrays
    "C293": "The method 'auto' chooses the {setting} by itself; leave {setting} out, or name a method.",
    "C294": "There is no tag {given} among the classes; they are: {known}.",
    "C295": "The columns have no names: y holds {n_labels} labels for {n_tags} columns; name the label of each column (classes).",
    "C296": "None of the gold labels ({gold}) is one of the classes, which are {known}; check that scores and gold use the same labels.",
    "C297": "This calibrator has no {what}; fit it with {parameter}.",
    "C298": "No calibrator can be read from {path} ({why}); give a file that `calib fit` made of scores, or TagCalibrator.to_disk wrote.",
    "C299": "The calibrator in {path} cannot be used here: {why}; upgrade spacy-calib, install what is missing, or fit it again.",
    # Files of scores
    "C300": "{path} has no column {missing}; it has: {known}. Give a tag and a score on each row, best with document, unit and gold.",
    "C301": "{where} of {path} cannot be read: {why}.",
    "C302": "{path} holds no scores; give a row for each unit and tag.",
    "C303": "{path} cannot be read as a file of scores ({why}); give .csv, .tsv, .jsonl, .parquet or .npz.",
    "C304": "Parquet needs pyarrow, which is not installed; run `pip install spacy-calib[parquet]`.",
    "C305": "{path} has no gold, which is needed to learn and to judge; add a column gold (in .npz beside a matrix P: y).",
    "C306": "{share} % of the gold tags in {path} are on no row ({unknown}); give rows for these tags too, or go on with --allow-unknown.",
    # Pictures and text
    "C095": "The Doc that begins {text!r} has no scores with the prefix '{attr}'; run it through a fitted calib pipe, and keep what that wrote (DocBin: store_user_data=True).",
    "C096": "The scores with the prefix '{attr}' are of {unit}s ({layer}), not of entities; render them with style='tokens'.",
    "C097": "The output {path} is one file, but there are several pictures to draw: {pictures}; name a folder, or one of them with --kind.",
    "C321": "A chain needs scores of the labels that its potentials are of, at least one: there are {wanted} labels in the potentials, {given} in the scores.",
    "C322": "The scores of a chain hold NaN or infinity; look at the weights of the model.",
    "C323": "Sequence {number} has no labelling that is allowed: loosen the constraints, or mend the scores that are -inf.",
    "C324": "Tokens have no extension '{name}': register it with Token.set_extension before the pipeline is made (on the command line in a file given with --code).",
    "C325": "The component '{name}' has {labels} labels, its weights are of {given}; initialize it again.",
    "C326": "The component '{name}' needs at least two labels of '{target}' to learn from; given: {given}.",
    "C327": "The component '{name}' has learned nothing yet: initialize the pipeline with examples.",
    "C335": "The component '{name}' cannot be loaded from {path} ({why}); copy its folder anew, or train it again.",
    "C336": "The component '{name}' was saved in format version {given}, but this spacy-calib reads up to version {wanted}; upgrade spacy-calib or train it again.",
    "C337": "The constraints of component '{name}' name {unknown}, which is none of its labels ({known}); take it out of the constraints, or add it to the labels.",
    "C338": "The gold labels of the document that begins {text!r} break the constraints of component '{name}' ('{label}' {place}); mend the gold, or loosen the constraints.",
    "C339": "The gold label '{label}' of the document that begins {text!r} is none of the labels of component '{name}' ({known}); add it to its labels (`spacy init labels` writes them), or take it out of the gold.",
    "C340": "Option --way {way} does not go with component '{component}' ({kind}): {wanted}; name another way, or leave it out.",
    "C329": "CRFsuite is not installed: pip install 'spacy-calib[crfsuite]'.",
    "C328": "Cannot read the feature template {given!r}; it is a name (chunking, spelling), or a list of texts such as 'ORTH[-1] ORTH[0]': attributes of tokens and how far off they stand.",
    "C342": "The component '{name}' ({kind}) gives pairs of labels no probability; a calib_crf, a calib_hmm or a calib_crfsuite does.",
    # Coreference
    "C355": "Antecedents of mentions do not fit together: {why}.",
    "C356": "There is nothing to learn coreference from: give examples whose gold has clusters of mentions (doc.spans['coref_clusters_1'] and so on).",
    "C357": "The component '{name}' has learned nothing yet: initialize the pipeline with examples that have clusters of mentions.",
    "C358": "The extension Doc._.coref belongs to somebody else; remove it before the component '{name}' is made.",
    "C359": "Among the mentions of doc.spans[{key!r}] one stands twice ({text!r}); give each mention once, clusters apart.",
    "C360": "The Doc has {given} mentions, there is none with the number {number}.",
    "C361": "The pairs of '{name}' cannot be calibrated: {why}; give it a recalibrator, and two documents at least with clusters of mentions.",
    # Events
    "C372": "Features must be finite numbers in an array of shape (rows, features), but {given} was given.",
    "C373": "Cannot fit a {what} on no rows; give it data with gold.",
    "C374": "This {what} learned from {wanted} features, but {given} were given; give the same ones.",
    "C380": "A function of the registry calib_events must make an event, but {given} was given; make a spacy_calib.doc.events.Event, or an OwnEvent.",
    "C382": "None of the {several} has both scores and gold, so that nothing can be learned of them; give gold with sentences and labels, and enable what finds the {several}.",
    "C383": "The event {event} is about the labels of tokens, but '{component}' gives {what}; leave it out.",
    "C384": "The event {event} needs {event}s, but nothing in the pipeline finds any; add a parser, a senter or a sentencizer.",
    "C385": "The event pipe '{owner}' writes Span._.{attr}_right already; give this one the prefix of another calib pipe (attr), or remove the other.",
    # Counts
    "C390": "The chances of units to be counted must be numbers from 0 to 1, one for each; those given are not.",
    "C391": "Draws of a count must be whole numbers of 0 or more, one at least; those given are not.",
    "C392": 'The query {given} cannot be read: {why}. Give a label (PERSON), text=..., lemma=..., a token pattern ([{{"TAG": "NNP"}}]) or an event ({{"verb": "attack", "names": ["Iraq"]}}).',
    "C393": "No calib pipe of the pipeline knows the label '{given}' of the query {query}; they know: {known}.",
    "C394": "The query {query} asks for {key}, which no calib pipe of the pipeline scores; there are scores of {known}.",
    "C395": "The query {query} needs {what}; add {add} to the pipeline.",
    "C396": "The query {query} looks at {key}, which the labelled documents in {path} do not have; give documents with it, or leave --gold out.",
    "C397": "Text {line} of {path} has nothing under the key '{key}' that texts can be counted by: {why}; name another key (--by), or leave it out.",
    "C398": "{what} is not counted by {given}; give --unit {wanted}.",
    "C399": "What was ranked of so many texts waits in a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room, or give --repeats.",
    "C468": "The scores of so many texts wait in a temporary file, which cannot be written: {why}; set TMPDIR to a folder with room.",
    # Draws
    "C410": "Whole annotations cannot be drawn from scores of '{layer}': heads that are drawn one by one make no tree; draw labels of tokens, entities, spans or text categories.",
    "C411": "Sentence starts that were drawn cannot be written on a Doc with a parse; take them from `codes`, or draw before a parser has run.",
    "C412": "Labels of '{name}' cannot be drawn together from scores of '{layer}': it gives '{own}'; name the component that the calib pipe '{attr}' reads.",
    "C413": "The Doc that begins {text!r} has no scores of '{attr}' to draw from; run a pipeline with a fitted calib pipe of that prefix over it, and draw before its words change.",
    "C414": "A draw is written on a Doc with the same words, but the one that begins {text!r} has others; give a copy of the Doc that was drawn for.",
    "C415": "Clusters that follow calibrated pairs can be drawn of {wanted} mentions at most, this Doc has {given}; draw them as the model gives them (calibrated=False).",
    "C416": "Entities are drawn by their own scores, not by the chain of '{name}': use Doc._.{attr}.sample.",
    # Statistics that add up
    "C425": "The statistics of {one} and of {another} cannot go together: they differ in {what} ({given}; {wanted}); collect all with the same model and options.",
    "C426": "The shard '{name}' is there twice{why}; give each shard once, under a name of its own (--shard).",
    "C427": "The statistics in {path} cannot be read: {why}; collect the shard again, or copy the file anew.",
    "C428": "Of {total} shards there are {n}: {missing} missing; give the statistics of all of them.",
    "C429": "The statistics in {path} are of version {given}, but this spacy-calib reads version {wanted}; collect them with this one.",
    "C430": "The statistics in {path} were collected for `calib {given}`, not for `calib {wanted}`; collect them {how}.",
    "C431": "A setting of the source of '{component}' is left to the fit, which shards cannot choose one by one; name it in the config, or fit on the data itself.",
    "C432": "The feature '{name}' of the context asks the documents themselves, which statistics do not hold; collect them with a calib pipe, or a --config, that has this feature.",
    "C433": "Option {option} takes the place of {given}; give one of the two.",
    "C434": "There are no statistics at {path}; give {wanted} that `calib collect` wrote.",
    "C435": "Option {option} looks at documents, which statistics do not hold; leave it out, or give DATA in the place of --from.",
    "C436": "The file {path} cannot be added to those before it. {why}",
    "C421": "Tables of cells can only be added up where tags and cells are the same, but one has {first} and another {second}; collect all shards with the same labels.",
    "C422": "A cell can hold {most} pairs at most, but more were added up; add up fewer shards.",
    "C480": "There is no key in {path} ({why}); name a file that `calib collect --key` made, or to `collect` one that does not exist yet.",
    "C481": "The key of --key has the fingerprint {given}, but {name} was collected with {wanted}; give the same key, or leave --key out.",
    "C482": "FITTED ON THE TRAINING DATA: {part} stand in --train-data too, where the model is surer of itself than on any other text, so nothing was written; give "
    "held-out gold, or go on with --allow-seen.",
    # Scores as files
    "C440": "{path} needs pyarrow to be unpacked, which is not installed; run `pip install spacy-calib[parquet]`, or give it as .jsonl.gz.",
    "C441": "{path} has no column '{name}'; it has: {known}. Name the one that is meant (--columns text=NAME,id=NAME), or rename it.",
    "C442": "The column '{name}' of {path} holds {given}, but texts are wanted; name another one (--columns text=NAME).",
    "C443": "The scores in {path} are of another run: {why}; give what was given then, choose another folder, or start anew with --force.",
    "C444": "The manifest {path} of a folder of scores cannot be used ({why}); start anew with --force, or choose another folder.",
    "C445": "The folder {path} holds '{name}', which `calib apply` did not write; choose an empty folder, or one that does not exist yet.",
    "C446": "There are no rows of kind '{unit}': the calib pipes score {known}; choose {wanted} (--unit).",
    "C447": "Rows of sentences need what finds them, but nothing in the pipeline does; add a parser, a senter or a sentencizer.",
    "C448": "The text in line {line} of {path} has {n} characters, and the pipeline takes {most} at most (nlp.max_length); split it.",
    "C449": "{path} changed while it was read; leave it as it is, and run the command again.",
    "C470": "Another run of `calib apply` is writing into {path}; wait for its end, or choose another path.",
    "C471": "A worker process was killed ({signal}), as systems do that run out of memory; give the command again with fewer of them (--n-process).",
    "C472": "The output {path} lies in {folder}, which holds the scores of another run; choose a path outside of it.",
    # Spark
    "C450": "Spark is not installed; run `pip install spacy-calib[spark]`.",
    "C451": "Spark needs Java 17 or later, but {why}; install one (on Debian `apt-get install openjdk-17-jre-headless`) or let JAVA_HOME name its folder.",
    "C452": "The DataFrame has no column '{given}'; it has: {available}.",
    "C453": "The column '{name}' must be of the type {wanted}, but it is {given}; cast or select another.",
    "C454": "On a worker of Spark: {why} Workers need it as an installed package, or at a path that all of them see.",
    "C455": "The column '{given}' cannot be kept, since the scores have a column of this name; rename it before.",
    "C456": "The column '{name}' of the DataFrame holds no documents; give DocBins with gold.",
    "C457": "A row of the column '{name}' is no DocBin ({why}); give the bytes of .spacy files, or what `spacy_calib.spark.gold_frame` makes.",
    "C545": "Option --gold names a source and where its gold lies, NAME=PATH, but '{given}' was given; write, for instance, --gold EWT=dev.spacy.",
    "C546": "Two sources of gold are called '{given}'; give each a name of its own (DATA has that of its file).",
    "C547": "Gold of a single source has a name ('{given}'), so that there is nothing to tell it from; name two or more, or none.",
    "C548": "The gold source '{given}' is none that the pipe '{name}' was fitted on; {known}.",
    "C549": "The name of a gold source must be a text, but {given} was given; set Doc._.calib_source to a name or to None.",
    "C560": "The pipe '{name}' has no map for texts of other sources, since its fit looked at no words or was adapted to texts of another kind; leave --map-for out, or fit with --context.",
    "C098": "The pipe '{name}' judges no tag '{tag}'; it judges: {available}.",
}

WARNINGS = {
    "CW01": "[CW01] The pipe '{name}' is not fitted: it passes raw probabilities through; fit it on held-out gold, by `python -m spacy calib fit MODEL DATA OUTPUT` or its method fit(examples).",
    "CW02": "[CW02] The pipe '{name}' gives no scores: {why}.",
    "CW03": "[CW03] {n} labels of component '{component}' were added after '{name}' was fitted; they use the pooled map.",
    "CW04": "[CW04] Component '{component}' was trained, or replaced, since '{name}' was fitted: the maps belong to other weights, and its scores are not calibrated; fit it again.",
    "CW19": "[CW19] The source of pipe '{name}' does not know the labels {labels}: what has a score under them gets no calibrated one.",
    "CW13": "[CW13] The pipe '{name}' was adapted to a single document: how documents differ is not to be known from one, so nothing says how true its scores are on others; label more.",
    "CW14": "[CW14] {share} % of the words that the pipe '{name}' was adapted to are in documents that it was fitted on, so there is little new to learn from them; label texts of the new kind.",
    "CW65": "[CW65] The pipe '{name}' has no map for texts of other sources, since its fit looked at no words or was adapted to texts of another kind: all texts get the map of the fit.",
    "CW23": "[CW23] The pipe '{name}' gives no forecasts of some Docs: {why}.",
    "CW40": "[CW40] What is registered as '{given}' in {registry} cannot be used ({why}) and is left out; mend or uninstall the package that registers it.",
    "CW21": "[CW21] {n} units ({share} %) have a gold label that no column has ({unknown}); all their tags count as wrong.",
}


# Values of sentences that are what somebody gave, of any length: these are cut, paths among them and lists of what is allowed are not.
_GIVEN = {"given", "query", "text"}


def brief(value: object, most: int = 40) -> str:
    """What was given, as a sentence tells it: on one line, of so many characters at most."""
    text = " ".join(str(value).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def calib_error(code: str, **values: object) -> CalibError:
    """Build the error with this code; what was given is cut, see `brief`.

    code (str): A key of the message table. values: What the sentence names.
    RETURNS (CalibError): The error, to be raised by the caller.
    """
    pipe = str(values["name"]) if code in UNREADABLE else ""
    for key in _GIVEN & values.keys():
        if not isinstance(values[key], PurePath) and len(str(values[key])) > 40:
            values[key] = brief(values[key])
    return CalibError(code, _MESSAGES[code].format(**values), pipe)
