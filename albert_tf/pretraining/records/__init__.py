"""Records: the sequences of a corpus as flat arrays on disk.

Text files are a `Corpus`, whose documents are read in blocks. Documents become
sentences, and those sequences of two segments (`segment_pairs`). The sequences of a
block are a shard: a directory of arrays (`shard_files`). Shards, a manifest and the
vocabulary are records (`records_directory`), which `PretrainingRecords` opens.
"""
