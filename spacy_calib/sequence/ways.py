"""The ways to tell how sure a labeller is without probabilities (Mejer & Crammer 2010); the command line names them."""

# Way -> the components that it can read.
WAYS = {
    "kd_pc": "it reads calib_online, whose weights have variances",
    "kd_fixed": "it reads calib_online and heads over token vectors (calib_crf, tagger, morphologizer, senter)",
    "kbv": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
    "wkbv": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
    "delta": "it reads sequence models (calib_crf, calib_hmm, calib_online, calib_crfsuite)",
}
# The ways that draw weights, and so have a scale.
DRAWN = ("kd_pc", "kd_fixed")
