"""The context of a token: its words, neighbours and document as features, and the calibration steps that use these."""
