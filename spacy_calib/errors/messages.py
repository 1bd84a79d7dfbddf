"""Every message of the core, each with a code; a plug-in has its own beside its modules."""

MESSAGES = {
    # Arrays and settings
    "C001": "{name} must be {wanted}, but {given} was given.",
    "C002": "{what} needs one {first} for every {second}, but got {n_first} and {n_second}; pass arrays of equal length.",
    "C003": "Cannot fit a {what} on no pairs; give it data with scores at or above {threshold}.",
    "C004": "{what} is not fitted yet; call fit() before predict().",
    "C005": "Only {n_pairs} pairs reach the threshold {threshold}, which is fewer than the {n_bins} bins that they are sorted into; give more data, or fewer bins (--bins).",
    "C006": "Only {n_pairs} pairs were given to fit on, but {what} needs {wanted}; give more data or ask for fewer bins.",
    "C071": "Cannot fit {what} on no tokens with gold; give it annotated data.",
    "C072": "The setting {setting} is about the one right label of a {unit}, but of {layer} a {unit} may have several; leave {setting} out.",
    "C185": "The short name {short!r} in the registry {registry} must belong to one entry, but {first} and {second} both have it; give one of their classes another `short`, or none.",
    "C500": "What is registered as '{given}' in {registry} cannot be imported ({why}); mend or uninstall the package that registers it.",
    # Context
    "C202": "The feature function '{name}' gave an array of shape {given} for {n} tokens; return one of shape ({n},), or ({n}, k) for k numbers a token, with the tokens of all "
    "Docs one after the other.",
    "C203": "The feature function '{name}' gave {given} for the Doc that begins {text!r}; return finite numbers only.",
    "C204": "The feature '{name}' gave {given} numbers a token, but {wanted} when the pipe was fitted; fit the pipe again.",
    "C206": "The feature function '{name}' failed: {why}; mend it.",
    # Saved state
    "C010": "The calibration data of pipe '{name}' in {path} cannot be read ({why}); fit the pipe again or copy the folder anew.",
    "C011": "The calibration data of pipe '{name}' has format version {given}, but this spacy-calib reads version {wanted}; fit the pipe again.",
    "C012": "The calibration data of pipe '{name}' names '{given}', which is not installed; install the package that registers it.",
    # Labels and components
    "C020": "The labels of component '{component}' were removed or reordered since '{name}' was fitted ({detail}); load the pipeline with exclude=['{name}'], save it, and fit that.",
    "C021": "The pipeline has no component '{component}'; it has: {available}. Name one of them with --component.",
    "C022": "Component '{component}' ({kind}) cannot be calibrated{why}; calib reads: {supported}; in this pipeline: {readable}. If it leaves scores "
    "on the Doc, name the source that reads them: --components.calib.source.@calib_sources spacy-calib.SpanScores.v1 (or TokenScores.v1, DocScores.v1).",
    "C317": "The pipeline has no component '{component}'; of those that it has, calib can read: {readable}. Name one of them with --component.",
    "C318": "The pipeline has no component '{component}', and calib can read none of those that it has ({available}); it reads: {supported}.",
    "C023": "Component '{component}' has no labels or is not trained; train it before you calibrate it.",
    "C024": "The logits of component '{component}' hold NaN or infinite values in the document that begins {text!r}; "
    "check the model's weights, nothing was calibrated.",
    "C025": "The attribute prefix '{attr}' is already used by {owner}; give this pipe another one (attr in the config, --attr on the command line).",
    "C027": "The pipeline has no fitted calib pipe; it has: {available}; {advice}.",
    "C028": "The pipe '{name}' stands before its source '{component}'; put it directly after it.",
    "C035": "The weights of component '{component}' hold NaN or infinite values; train it again, nothing was calibrated.",
    "C130": "{method} calibrated on {n} {rows} loses more than the raw scores on parts of the data held out in turn (log loss {raw:.3f} raw, {calibrated:.3f} "
    "calibrated), so nothing was written; {more}, let --method auto choose, or pass the raw scores through with --method identity.",
    "C131": "Sets that miss at most {alpha:g} of the {rows} are to be made of {n} {rows}, and {least} at least are wanted; give more data or ask for less with "
    "--components.calib.sets.alpha, up from {reached:g}.",
    "C120": "The pipe '{name}' cannot read this pipeline: {why}; or fit one here with `python -m spacy calib fit`.",
    # Gold data
    "C030": "The data has no gold {layer} annotation for component '{component}'; give data annotated with it.",
    "C031": "None of the {n_tags} gold labels in the data ({unknown}) is known to component '{component}', which knows {known}; check that the data and the model use "
    "the same tagset, {advice}.",
    "C151": "Component '{component}' knows none of the labels in the gold, so there is nothing to judge: the gold has {gold}; the component knows {known}; give gold with the component's labels, {advice}.",
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
    "C161": "{path} is not a CoNLL-U file that spaCy can read ({why}); {mend}.",
    "C166": "The rows of the array at {where} sum to {low} up to {high}, but the probabilities of a token sum to 1; give a column for every label, "
    "or set subprobabilities = true in the source if small ones were left out (they may not sum to more).",
    "C167": "The setting labels names {path}, which holds no list of labels ({why}); give a .json file with a list, or a .txt file with one label on each line.",
    # Label schemes
    "C162": "The map {given} cannot be used ({why}); write PERSON=PER,GPE=LOC (a label of the component, the label in the data, nothing for one without), "
    "or name a .json file with an object or a .tsv file with two columns.",
    "C163": "The labels of this component cannot be mapped: it gives {layer}, not labels of a scheme; leave out --map.",
    "C164": "{share} % of the gold labels are unknown to component '{component}' (mostly {unknown}; it knows {known}), which says {pairs}; {advice}.",
    "C165": "The map names '{label}', which is no label of component '{component}'; its labels are {known}.",
    # Command line
    "C050": "Cannot load the pipeline '{model}': {why}",
    "C490": "A component of the pipeline fails ({why}); copy the pipeline anew if a file of it is damaged, else mend the component.",
    "C051": "Data not found: {path}. Give a file, or a folder of files, that exists.",
    "C491": "The folder {path} of the data cannot be read ({why}); give one that you may read, and that nothing else changes meanwhile.",
    "C052": "The data in {path} holds no documents; give some with text, where gold is needed a .spacy file made with `spacy convert`.",
    "C053": "{path} is not a readable DocBin ({why}); {mend}.",
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
    "C057": "On a GPU (--gpu-id {gpu}) there can be one process only, but --n-process {n_process} was given; leave out one of the two.",
    "C060": "Cannot use GPU {gpu}: {why}",
    "C271": "The model of component '{component}' describes a state by {given} tokens, but calib decodes models with {wanted} (spaCy's TransitionBasedParser for parser).",
    "C272": "Option --event must be {wanted} for component '{component}', but '{given}' was given.",
    "C066": "Option {option} is for entity recognizers, but component '{component}' is a {kind}; leave it out.",
    "C067": "The pipeline {model} has no recognizer made by `spacy calib fit`; it has: {available}.",
    "C062": "Cannot import the code in {path}: {why}",
    "C195": "The setting {setting} of the pipe must be a function of the registry {registry}, but {given!r} is none; registered are: {names}. If it is your own, give its file with --code.",
    "C063": "The settings of the pipe cannot be used: {why}",
    "C170": "{option} is no setting of the pipe '{name}' that is fitted; settings of it begin with {prefix} (--attr names another pipe).",
    "C065": "The pipe '{name}' calibrates '{component}', which finds no entities; {advice}.",
    "C307": "There is no share to reach; give --precision (of accepted entities that are right), --recall (of entities that are not missed), or both.",
    "C530": "No cut-off reaches a precision of {precision} % with this confidence{reached}: the pipeline at {path} would accept nothing, so it is not written; ask for less, give more gold, or go on with --allow-empty.",
    "C310": "The pipe '{name}' scores the categories of documents (component '{component}'), of which none is outside of all, so that no cut-off bounds what is missed; give --precision.",
    "C308": "The pipe '{name}' knows no probability that a token is outside of all entities (component '{component}' gives none), so that no cut-off bounds what is missed; give --precision.",
    "C309": "The gold in {data} holds no entity with a score, so that nothing tells how many would be missed; give gold with entities.",
    "C068": "The pipeline has no fitted calib pipe with the prefix '{attr}'; its prefixes are: {available}. Name one of them with --attr.",
    "C077": "Several calib pipes are possible here, {names}; choose one: {options}.",
    "C078": "The data has no gold annotation for what is calibrated ({available}); give data annotated with it.",
    "C081": "{path} holds texts, but no gold: this command needs the right labels of some texts; give a .spacy or .conllu file, or what an annotation tool exported (.jsonl, .json).",
    "C084": "Component '{name}' is disabled, and '{component}' listens to it; enable it (nlp.enable_pipe('{name}'), or [nlp] disabled in config.cfg).",
    "C086": "Component '{component}' is in the pipeline and not trained, so that no text can be processed; train it, or disable it (nlp.disable_pipe('{component}'), or [nlp] disabled in config.cfg).",
    "C085": "There is no factory '{name}', which is the name of a calib pipe: take that pipe from another pipeline (nlp.add_pipe('{name}', source=other)), or add a new one "
    "(nlp.add_pipe('calib', name='{name}', config={{'attr': '{name}', 'source': {{'@calib_sources': 'spacy-calib.Ner.v1'}}}})); {advice}.",
    "C083": "There is no option {option}, but a setting of the pipe has this name; give that: {setting} VALUE.",
    "C082": "{where} of {path} has the fields {given}, and is no answer that Prodigy, Label Studio, doccano or Argilla exports (a queue is none yet), nor has it text and entities or cats, document and tokens, or tokens and ner_tags; write your own gold "
    'as {{"text": "Anna left.", "spans": [{{"start": 0, "end": 4, "label": "PERSON"}}], "answer": "accept"}}, a text on each line with all that is right in it, or as .spacy.',
    "C080": "The data has no gold {layer} annotation for component '{component}', but gold for {others}; {advice}.",
    "C079": "The pipeline has no fitted calib pipe for component '{component}'{owner}; calibrated are: {available}. Name one of them with --component.",
    "C069": "Component '{name}' is disabled in the pipeline; enable it (nlp.enable_pipe, or [nlp] disabled in config.cfg).",
    "C100": "The output {path} lies in the pipeline {folder}, which is only read; choose a path outside of it.",
    "C101": "Replacing {path} would delete {given}, which this command reads; choose another output.",
    "C102": "The outputs of {first} and {second} would be one ({path}); give each a path of its own.",
    "C105": "{thing} cannot be used: {value} cannot be imported ({why}); upgrade or remove the package that adds it.",
    "C103": "Cannot write to the standard output: {why}.",
    "C104": "A picture of {width} by {height} pixels is too large to draw; choose fewer tags, or SVG.",
    # Analysis
    "C061": 'Plots need matplotlib, which is not installed; run `pip install "spacy-calib[plots]"`.',
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
    # Parquet
    "C304": 'Parquet needs pyarrow, which is not installed; run `pip install "spacy-calib[parquet]"`.',
    # Pictures and text
    "C324": "Tokens have no extension '{name}': register it with Token.set_extension before the pipeline is made (on the command line in a file given with --code).",
    "C340": "The source {source} cannot read component '{component}' ({kind}){why}; name another one, or leave it out.",
    # Draws
    "C482": "FITTED ON THE TRAINING DATA: {part} stand in --train-data too, where the model is surer of itself than on any other text, so nothing was written; give "
    "held-out gold, or go on with --allow-seen.",
    # Scores as files
    "C440": '{path} needs pyarrow to be unpacked, which is not installed; run `pip install "spacy-calib[parquet]"`, or give it as .jsonl.gz.',
    "C441": "{path} has no column '{name}'; it has: {known}. Name the one that is meant (--columns text=NAME,id=NAME), or rename it.",
    "C442": "The column '{name}' of {path} holds {given}, but texts are wanted; name another one (--columns text=NAME).",
    "C446": "There are no rows of kind '{unit}': the calib pipes score {known}; choose {wanted} (unit).",
    "C447": "Rows of sentences need what finds them, but nothing in the pipeline does; add a parser, a senter or a sentencizer.",
    "C448": "The text in line {line} of {path} has {n} characters, and the pipeline takes {most} at most (nlp.max_length); split it.",
    "C471": "A worker process was killed ({signal}), as systems do that run out of memory; give the command again with fewer of them (--n-process).",
    # Spark
    "C600": "The function that is registered in calib_keys as '{key}' failed on the Doc that begins {text}: {why}; mend the function.",
    "C601": "No document has anything under the key '{key}'; give a key of Doc.user_data (DocBin: store_user_data=True), a field of the JSON lines, or the name of a function in the registry calib_keys.",
    "C602": "Each of the {n} documents has a value of its own under the key '{key}', so that none can be judged beside others of its kind; give a key that documents share.",
    "C740": "Further scores ({given}) are of the one category of a document, but here it may have several (exclusive = false); name one score, a mapping of categories.",
    "C742": "The pipe '{name}' learned from the further scores {wanted}, but its source reads {given}; name these in the source (score), or fit the pipe again.",
    "C741": "The setting context names what a fit learns of further scores, which is no setting; leave it out, and name these scores in the source (score).",
    "C690": "{n} of the {of} texts in {path} were labelled because they were doubtful (rank, select, audit), so that they show what the worst ones are like, not all, even beside other gold; label the whole documents that `select --for adapt` chooses, or answer what `rank --order random` asks.",
    "C692": "The answers in {path} cannot be read: {why}; export them from the tool anew.",
    "C693": "{where} of {path} is {given}: answers are what one of Prodigy, Label Studio, doccano and Argilla exports when people have answered; give each tool's answers in a file of their own.",
    "C694": "The answers in {path} are of two projects: {given}; export each into a file of its own.",
    "C695": "A span '{label}' of {where} in {path} goes from character {start} to {end}, but its text has {n}, or nothing but white space stands there; export the answers with the texts that they are of.",
    "C785": "No answer in {path} can be read: the tool marked {words!r} in {where}, but characters {start} to {end} of its text are {actual!r}, and so of every other text with a mark; export the answers with the texts that people saw.",
    "C786": "The answered records have several fields with text ({fields}), and nothing says which one people saw; rename that one to 'text' in the file.",
    "C788": "{where} of {path} is {given}, which is no record that an annotation tool or training data of spaCy has; give objects with a text and its labels, or lists of a text and an object.",
    "C787": "{path} is no gold that can be read here: {why}; {mend}.",
    "C696": "Nobody answered anything in {path}: all its records are ignored, skipped or without an annotation{skipped}; export it when they are answered.",
    "C745": "The pipe '{name}' found no entity in any of the {n_docs} documents, so that there is nothing to give a score to; give texts that hold names which the pipeline finds.",
    "C748": "{path} cannot be read by {value} ({why}); mend the file, or the package that adds this reader.",
    "C747": "{path} cannot be read: it is empty; give gold as .spacy or .conllu, or what an annotation tool exports.",
    "C697": "No accepted span has a label of component '{component}' ({unknown}; it knows {known}): these are answers about another model, or another scheme; give those about this one, {advice}.",
    "C640": "A span that a tool found must have its first character, the one behind its last, a label and perhaps a score in [0, 1], but of {text!r} ({n} characters) {given} was given; hand over dicts with start, end, label and score.",
    "C815": "What the pipe '{name}' learned could not be read again, so that no pipeline was written and an older one is left as it was ({why}); report this, if you may with the data.",
    "C800": "{what}, so that nothing tells how often component '{component}' is right about anything else; {mend}.",
    "C801": "The gold names these categories only where a text has them, never where it lacks them: {names} ({n} times), so that no score of component '{component}' could be wrong; give each text a "
    "value for every category, 0 where it lacks it (doc.cats = {{'A': 1.0, 'B': 0.0}}).",
    "C802": "Each of the {n} tokens is its own head in the gold, as where the heads were left out: nothing of it tells whether the arcs of component '{component}' are right; give data with dependency trees.",
    "C803": "None of the {n} {unit} is right by the gold, though the scores of component '{component}' let expect {expected}: there is nothing to learn when it is right; check that texts and labels of the "
    "gold are those of the model.",
    "C804": "The gold agrees with component '{component}' everywhere, though its scores let expect {expected} errors in {n} {unit}: it looks like the output of the pipeline itself (nlp.pipe), of which "
    "nothing is to be learned; give gold that people annotated or corrected, so much of it that the component makes an error.",
    "C838": "The setting context names '{given}', which is a part of a pretrained calibration and no setting; leave it out.",
    # Of several plug-ins
    "C226": "An interval from labelled documents needs two of them at least, but --gold has {n} with gold (by {by}); label another one, picked at random.",
    "C412": "Labels of '{name}' cannot be drawn together from scores of '{layer}': it gives '{own}'; name the component that the calib pipe '{attr}' reads.",
    "C749": "The output {path} cannot be written: no writer for {suffix}; it comes with {package}.",
    "C615": "Component '{component}' of {model} sets {layer}, and that of {other} (--against) {given}: there is nothing to compare; give a pipeline whose component labels the same.",
    "C616": "Component '{component}' of {model} and that of {other} (--against) share no label ({known}; {given}): their tag sets differ; compare pipelines that were trained on one scheme, or fit one with --map.",
    "C617": "No token of the gold has a scored label of component '{component}' by both {model} and {other} (--against): there is nothing to compare; --gold-preproc gives both the tokens of the gold.",
    "C618": "An {called} counts as right by the event '{event}' in {model}, and by '{given}' in {other} (--against): fit both with one --event.",
    "C413": "The Doc that begins {text!r} has no scores of '{attr}' to draw from; run a pipeline with a fitted calib pipe of that prefix over it, and draw before its words change.",
    "C418": "Whole annotations cannot be sampled, as nothing that is installed adds 'sample' to Doc._.<attr> (entry points of the group spacy_calib_view); install all of spacy-calib.",
}

WARNINGS = {
    "CW01": "[CW01] The pipe '{name}' is not fitted: it passes raw probabilities through; {advice}.",
    "CW02": "[CW02] The pipe '{name}' gives no scores: {why}.",
    "CW03": "[CW03] {n} labels of component '{component}' were added after '{name}' was fitted; they use the pooled map.",
    "CW04": "[CW04] Component '{component}' was trained, or replaced, since '{name}' was fitted: the maps belong to other weights, and its scores are not calibrated; fit it again.",
    "CW19": "[CW19] The source of pipe '{name}' does not know the labels {labels}: what has a score under them gets no calibrated one.",
    "CW13": "[CW13] The pipe '{name}' was adapted to a single document: how documents differ is not to be known from one, so nothing says how true its scores are on others; label more.",
    "CW14": "[CW14] {share} % of the words that the pipe '{name}' was adapted to are in documents that it was fitted on, so there is little new to learn from them; label texts of the new kind.",
    "CW24": "[CW24] The pipe '{name}' was fitted to scores of {components}, which computes at half precision (on a GPU, with mixed_precision): raw scores differ by about .001 "
    "from those at full precision, and calibrated ones by up to .1; run the pipeline on the kind of device that it was fitted on, or set mixed_precision = false and fit again.",
    "CW40": "[CW40] What is registered as '{given}' in {registry} cannot be used ({why}) and is left out; mend or uninstall the package that registers it.",
    "CW55": "[CW55] Tokens with two accepted labels, of which nothing is known: {n} in {path}; leave one label on each, and export the answers anew.",
    "CW56": "[CW56] What is no label in {path} is skipped: {names}.",
    "CW60": "[CW60] {n} of the {of} sentences in {path} have other words than their `# text` says (the first: {text!r}): the component is run over the words, which nobody wrote so; correct the file.",
    "CW61": "[CW61] {n} of the {of} answered texts in {path} are left out: in {where} the tool marked {words!r}, but characters {start} to {end} of the text are {actual!r}; export the answers with the texts that people saw.",
    "CW62": "[CW62] {share} % of the words in {path} are joined to the next one where the tokenizer sees one word (the first: {first!r}): contractions that `spacy convert` took apart make a text that nobody wrote; give the .conllu file itself, or convert it with --merge-subtokens.",
    "CW65": "[CW65] The gold differs from component '{component}' in {errors} of {n} {unit}, though raw scores let expect {expected} errors: either the component is far too unsure, or the gold was made from the "
    "output of the pipeline, and scores fitted on it are too high.",
}
