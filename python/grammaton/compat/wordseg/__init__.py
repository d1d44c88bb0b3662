"""Drop-in replacements: `wordseg.ag.segment` and `wordseg.evaluate.evaluate`, with the signatures and defaults of wordseg 0.8."""
