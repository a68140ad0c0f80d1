"""Models of other libraries in the sizes of an `AlbertBackbone`."""


def transformers_config(sizes, **options):
    """Return the `transformers.AlbertConfig` of the sizes of an `AlbertBackbone`."""
    import transformers

    return transformers.AlbertConfig(
        vocab_size=sizes["vocabulary_size"],
        hidden_size=sizes["hidden_dim"],
        num_hidden_layers=sizes["num_layers"],
        num_attention_heads=sizes["num_heads"],
        intermediate_size=sizes["intermediate_dim"],
        embedding_size=sizes["embedding_dim"],
        hidden_act="relu" if sizes.get("activation") == "relu" else "gelu_new",
        **options,
    )
