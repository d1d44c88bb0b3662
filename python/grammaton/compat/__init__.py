"""Names and files of other programs: `wordseg` for wordseg's, `pycfg` for py-cfg's."""
