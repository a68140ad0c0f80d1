"""The tables of pages, from the results of the benchmarks: `make figures`.

Each function in `TABLES` returns a table in Markdown. Its arguments are the results by
the name of their file, and whether the page is in Chinese.
"""

import json
import pathlib
import statistics

KNOWN = pathlib.Path(__file__).with_name("known_models.json")
# Data of `benchmarks/classify.py`, and a text of its examples in both languages.
CLASSIFIED = {
    "classify_lcqmc_albert_tiny_zh": ("tiny, {} LCQMC pairs", "tiny，{} 个 LCQMC 句对"),
    "classify_chnsenticorp_albert_tiny_zh": (
        "tiny, {} of ChnSentiCorp",
        "tiny，{} 条 ChnSentiCorp",
    ),
    "classify_long_albert_tiny_zh": (
        "tiny, {} texts of {:.0f} tokens",
        "tiny，{} 条 {:.0f} 个 token 的文本",
    ),
    "classify_lcqmc_albert_base_zh": ("base, {} LCQMC pairs", "base，{} 个 LCQMC 句对"),
}
ENGINES = {
    "albert-tf": ("albert-tf, Keras", "albert-tf，Keras"),
    "albert-tf, bfloat16": ("the same, bfloat16", "同左，bfloat16"),
    "ONNX Runtime float32": ("ONNX Runtime", "ONNX Runtime"),
    "ONNX Runtime int8": ("ONNX Runtime, int8", "ONNX Runtime，int8"),
    "LiteRT int8": ("LiteRT, int8", "LiteRT，int8"),
    "transformers": ("transformers", "transformers"),
    "transformers, sorted": ("transformers, sorted", "transformers，排序"),
    "transformers, bfloat16": ("the same, bfloat16", "同左，bfloat16"),
    "KerasHub, padded to the longest": ("KerasHub, trimmed", "KerasHub，裁剪"),
}
TRAINED = (
    "albert-tf",
    "albert-tf, bfloat16",
    "transformers",
    "transformers, bfloat16",
    "KerasHub, padded to the longest",
)
PREDICT, ON_BATCH = "albert-tf predict", "KerasHub predict_on_batch"
LATENCY = {
    "SavedModel": "SavedModel",
    PREDICT: "albert-tf `predict`",
    ON_BATCH: "KerasHub `predict_on_batch`",
    "transformers": "transformers",
    "ONNX Runtime float32": "ONNX Runtime",
    "ONNX Runtime int8": "ONNX Runtime, int8",
    "LiteRT int8": "LiteRT, int8",
}
# Names of data sets in `pretraining_gain.json`, in pages, and in short.
DATA = {
    "ChnSentiCorp": ("ChnSentiCorp", "ChnSentiCorp"),
    "the demo's reviews": ("the demo's reviews", "演示用评论"),
    "THUCNews headlines": ("THUCNews headlines", "THUCNews 标题"),
    "LCQMC": ("LCQMC pairs", "LCQMC 句对"),
    "STS-B": ("STS-B, Spearman", "STS-B，Spearman"),
    "NLPCC 2014 shops": ("NLPCC 2014 shops", "NLPCC 2014 电商"),
    "People's Daily": ("People's Daily, entity F1", "人民日报，实体 F1"),
}
SHORT = {
    "ChnSentiCorp": ("reviews (ChnSentiCorp)", "评论（ChnSentiCorp）"),
    "THUCNews headlines": ("headlines (THUCNews)", "新闻标题（THUCNews）"),
    "LCQMC": ("question pairs (LCQMC)", "问句对（LCQMC）"),
    "STS-B": ("similarity (STS-B, Spearman)", "语义相似度（STS-B，Spearman）"),
    "People's Daily": ("entities (People's Daily, F1)", "命名实体（人民日报，F1）"),
}
# Rows of `bundled_sentences.py`.
WRITTEN = {
    "thirty sentences": "sentences for all six heads",
    "long reviews": "reviews with the verdict at the end of a story",
    "Traditional": "reviews in Traditional characters",
}
# Names of `bundled_heads.py`, where they differ.
UNLABELLED = {"THUCNews headlines": "THUCNews"}
OURS, RANDOM = "albert_micro_zh", "random weights"
# Initials of the baselines.
BASELINES = {
    "TF-IDF, logistic regression": "C",
    "mean of token vectors": "M",
    "naive Bayes": "B",
    "cosine of TF-IDF": "T",
    "CRFsuite on characters": "F",
}
SIZES = {
    "0": ("no labels", "无标注"),
    "50": ("50 labels", "50 条标注"),
    "200": ("200 labels", "200 条标注"),
    "500": ("500 labels", "500 条标注"),
    "all": ("all labels", "全部标注"),
}
LEGEND = """\
`ratio` is the median speed over the rounds, relative to the row with ratio 1, with the
smallest and the largest. `cpu_ratio` is the same by processor time. `share` is the rate
of operations relative to that of a matrix product, measured just before and after.
`of KerasHub` is the time relative to KerasHub, and `90%` the 90th percentile."""


def table(columns, rows, first=""):
    """Return a table in Markdown; `first` is the title of the rows."""
    lines = [(first, *columns), ["---"] * (len(columns) + 1), *rows]
    # An empty cell has one space, and the second line none.
    text = "\n".join("|" + "".join(f" {x} |" for x in line) for line in lines)
    return text.replace("  |", " |").replace("| --- ", "|---").replace("--- |", "---|")


def speed_of(results, chinese, job, titles):
    """Return the speed relative to KerasHub by data and engine.

    That of transformers is in bold where it is faster than `fit` or `predict` of Keras
    in the same precision.
    """
    lines = []
    for file, texts in CLASSIFIED.items():
        rows, title = results[file][job], _title(results[file], texts[chinese])
        lines.append((title, *(_speed(rows, engine) for engine in titles)))
    return table([title[chinese] for title in titles.values()], lines)


def _title(found, text):
    """Return the title of a row: the model and the texts of a `classify.py`."""
    settings = found["settings"]
    return text.format(settings["examples"], settings["mean_tokens"])


def _speed(rows, engine):
    # Without units for bfloat16, it is not measured.
    if engine not in rows:
        return ""
    row = rows[engine]
    text = f"{row['ratio']:.1f}"
    ours = "albert-tf, bfloat16" if "bfloat16" in engine else "albert-tf"
    if engine.startswith("transformers") and row["ratio"] > rows[ours]["ratio"]:
        text = f"**{text}**"
    return f"{text} ({row['smallest']:.1f}, {row['largest']:.1f})"


def predict(results, chinese):
    return speed_of(results, chinese, "predict", ENGINES)


def fit(results, chinese):
    titles = {x: ENGINES[x] for x in TRAINED} | {"albert-tf": ("albert-tf",) * 2}
    return speed_of(results, chinese, "fit", titles)


def avx2(results, chinese):
    """Return the speed of Keras relative to transformers, with AVX2 alone."""
    lines = []
    for file, texts in CLASSIFIED.items():
        found = results[f"{file}_avx2"]
        rates = (
            [found[job][x]["examples/s"] for x in ("albert-tf", peer)]
            for job, peer in (
                ("predict", "transformers, sorted"),
                ("fit", "transformers"),
            )
        )
        title = _title(found, texts[chinese])
        lines.append((title, *(f"{ours / theirs:.1f}" for ours, theirs in rates)))
    return table(["`predict`", "`fit`"], lines)


def speed_in_short(results, chinese):
    """Return the table of the README."""
    file = results["classify_lcqmc_albert_tiny_zh"]
    rows, trained = (
        {engine: f"{row['ratio']:.1f}" for engine, row in file[job].items()}
        for job in ("predict", "fit")
    )
    other = "{} ({})" if not chinese else "{}（{}）"
    trimmed = "KerasHub, padded to the longest"
    names = (
        (
            "albert-tf: `model.predict`, `fit` (bfloat16)",
            "albert-tf：`model.predict`、`fit`（bfloat16）",
        ),
        (
            "albert-tf: `albert-tf predict` with ONNX Runtime (int8)",
            "albert-tf：`albert-tf predict`，ONNX Runtime（int8）",
        ),
        ("albert-tf: a LiteRT file in int8", "albert-tf：LiteRT 文件，int8"),
        ("transformers (texts sorted by length)", "transformers（先按长度排序）"),
        (
            "KerasHub, batches cut to their longest text",
            "KerasHub，按批次内最长文本裁剪",
        ),
    )
    onnx = other.format(rows["ONNX Runtime float32"], rows["ONNX Runtime int8"])
    peer = other.format(rows["transformers"], rows["transformers, sorted"])
    keras = (
        other.format(found["albert-tf"], found.get("albert-tf, bfloat16", "–"))
        for found in (rows, trained)
    )
    cells = (
        tuple(keras),
        (onnx, ""),
        (rows["LiteRT int8"], ""),
        (peer, trained["transformers"]),
        (rows[trimmed], trained[trimmed]),
    )
    lines = [(x[chinese], *y) for x, y in zip(names, cells, strict=True)]
    return table(["`predict`", "`fit`"], lines)


def latency(results, chinese):
    lines = []
    for size in ("tiny", "base"):
        rows = results[f"latency_albert_{size}_zh"]
        lines.append([size, *(_digits(rows[x]["ms"]) for x in LATENCY)])
    names = [x.replace(", ", "，") if chinese else x for x in LATENCY.values()]
    return table(names, lines)


def _digits(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def engines(results, chinese):
    """Return texts per second by engine, and the milliseconds of one text."""
    files = ("lcqmc", "chnsenticorp", "long")
    files = [results[f"classify_{x}_albert_tiny_zh"] for x in files]
    latencies = results["latency_albert_tiny_zh"]
    lines = []
    for title, engine, single in (
        ("Keras, `model.predict`", "albert-tf", PREDICT),
        ("Keras, bfloat16", "albert-tf, bfloat16", None),
        ("SavedModel", None, "SavedModel"),
        *(
            (x.replace(" float", ", float").replace(" int", ", int"), x, x)
            for x in ("ONNX Runtime float32", "ONNX Runtime int8", "LiteRT int8")
        ),
    ):
        rows = [x["predict"].get(engine) for x in files]
        rates = [_rate(row["examples/s"]) if row else "" for row in rows]
        ms = f"{latencies[single]['ms']:.1f} ms" if single else ""
        title = title.replace(", ", "，") if chinese else title
        lines.append((title, *rates, ms))
    tokens = f"{files[-1]['settings']['mean_tokens']:.0f}"
    long = f"{tokens} 个 token 的文本" if chinese else f"texts of {tokens} tokens"
    columns = ("LCQMC", "ChnSentiCorp", long, "单条文本" if chinese else "one text")
    return table(columns, lines, "引擎" if chinese else "engine")


def _rate(value):
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"


def scores(results, name, size):
    """Return the scores of the seeds of our model: few labels by `finetune`."""
    if size == "0":
        row = _without_labels(results, name)
        return [row["score"]] if row else []
    if row := results["few_labels"].get(f"{name}, {size} labels"):
        return [y for x, y in row.items() if x.startswith("after ")]
    return results["pretraining_gain"].get(f"{name}, {size}", {}).get(OURS, [])


def _without_labels(results, name):
    """Return the row of the head that answers a data set, empty without one."""
    return results["bundled_heads"].get(UNLABELLED.get(name, name), {})


def best_baseline(results, name, size):
    """Return the mean and the initial of the best baseline, or `None`."""
    if size == "0":
        found = _without_labels(results, name).get("baseline")
        # The head of entities learned the training part, and so did their baseline.
        return best_baseline(results, name, "all") if found is None else (found, "")
    row = results["pretraining_gain"].get(f"{name}, {size}", {})
    means = [(statistics.mean(row[x]), y) for x, y in BASELINES.items() if x in row]
    return max(means, default=None)


def accuracy(results, chinese):
    """Return the scores of our model, in bold if better than the best baseline."""
    lines = []
    for name, titles in DATA.items():
        for size, labels in SIZES.items():
            ours = scores(results, name, size)
            if not ours:
                continue
            best = best_baseline(results, name, size)
            row = results["pretraining_gain"].get(f"{name}, {size}", {})
            is_better = best and statistics.mean(ours) > best[0]
            title = ("，" if chinese else ", ").join((titles[chinese], labels[chinese]))
            lines.append(
                (
                    title,
                    # Without labels, nothing is drawn by a seed.
                    _mean(ours, chinese, is_better, by_seed=size != "0"),
                    _mean(row.get(RANDOM, ()), chinese),
                    f"{best[0]:.3f} {best[1]}".rstrip() if best else "",
                )
            )
    first = "测试集" if chinese else "test set"
    others = ("随机权重", "最佳基线") if chinese else (RANDOM, "best baseline")
    return table((OURS, *others), lines, first)


def _mean(values, chinese, is_bold=False, by_seed=True):
    if not values:
        return ""
    text = f"{statistics.mean(values):.3f}"
    text = f"**{text}**" if is_bold else text
    if len(values) > 1 or not by_seed:
        return text
    return text + ("（单个随机种子）" if chinese else " (one seed)")


def read_known_models():
    return json.loads(KNOWN.read_text("utf-8"))


def known_models(results, chinese):
    """Return the published accuracies of models with the time of their shape."""
    known, times = read_known_models(), results["one_core"]["rows"]
    splits = {"test": "测试集", "dev": "开发集"} if chinese else {}
    lines = []
    for name, model in known["models"].items():
        layers, width, heads, *_ = model["shape"]
        split, page = model["split"], known["pages"][model["page"]]
        score = f"[{model['accuracy']}]({page})"
        shape = f"{layers} × {width}, {heads}"
        ms = _digits(times[name]["ms"])
        lines.append((name, shape, ms, score, splits.get(split, split)))
    columns = ("layers × width, heads", "ms", "accuracy, %", "split")
    if chinese:
        columns = ("层数 × 宽度，头数", "毫秒", "准确率，%", "划分")
    return table(columns, lines)


def accuracy_in_short(results, chinese):
    """Return the table of the README, without columns that nothing was measured for."""
    measured = {x: [scores(results, name, x) for name in SHORT] for x in SIZES}
    del measured["200"]
    sizes = [size for size, column in measured.items() if any(column)]
    other = "（{:.3f}）" if chinese else " ({:.3f})"
    lines = []
    for i, (name, titles) in enumerate(SHORT.items()):
        cells = []
        for size in sizes:
            ours, best = measured[size][i], best_baseline(results, name, size)
            text = f"{statistics.mean(ours):.3f}" if ours else ""
            cells.append(text + (other.format(best[0]) if ours and best else ""))
        lines.append([titles[chinese], *cells])
    return table([SIZES[x][chinese] for x in sizes], lines)


def service(results, chinese):
    lines = []
    for name in ("albert-tf-lite", "albert-tf-lite, int8", "transformers"):
        row = results["service_http"][name]
        cells = [f"{row[x]:.1f} ms" for x in ("median, ms", "99 %, ms")]
        cells += [f"{row['requests/s']:.0f}", f"{row['start, s']:.1f} s"]
        memory = [f"{row[x]:.0f} MB" for x in ("MB", "MB at the end")]
        cells.append(("，" if chinese else ", ").join(memory))
        lines.append([name.replace(", ", "，") if chinese else name, *cells])
    columns = (
        ("延迟中位数", "99% 延迟", "每秒请求数", "启动", "各进程内存合计，结束时")
        if chinese
        else (
            *("median", "99th percentile", "requests per second", "start"),
            "memory of the workers, at the end",
        )
    )
    return table(columns, lines)


def int8(results, chinese):
    """Return size, agreement and speed of the files of fine-tuned models."""
    columns = ("size", "accuracy", "labels of float32", "speed", "change by the batch")
    if chinese:
        columns = ("大小", "准确率", "与 float32 标签一致率", "速度", "随批次的变化")
    names = {"int8, a scale per batch": "int8，每次调用一个系数"} if chinese else {}
    lines = []
    for data, job in results["int8"]["jobs"].items():
        for name, row in job["rows"].items():
            cells = [f"{row['MB']:.1f} MB", f"{row['accuracy']:.3f}"]
            cells += [f"{row['as float32']:.4g}", f"{row['cpu_ratio']:.2f}"]
            title = f"{data}: {names.get(name, name)}"
            lines.append((title, *cells, f"{row['one batch']:.0e}"))
    return table(columns, lines)


def swapped_terms(results, chinese):
    """Return how often a label depends on a name, a region or a gender."""
    lines = [
        (name, row["texts"], f"{row['changed']:.0%}", f"{row['spread']:.2f}")
        for name, row in results["swapped_terms"]["rows"].items()
    ]
    columns = ("texts", "pairs with another label", "change of the probability")
    return table(columns, lines, "swapped")


def early_exit(results, chinese):
    names = {"plain": "without early exit"}
    names |= {f"patience {x}": f"`patience={x}`" for x in (4, 3, 2, 1)}
    rows = results["early_exit_12_layers"]
    lines = []
    for name, title in names.items():
        row = rows[name]
        speed, layers = f"{row['ratio']:.1f}", f"{row['layers']:.1f}"
        lines.append((title, f"{row['accuracy']:.3f}", speed, layers))
    return table(("accuracy", "speed", "layers"), lines)


def convert(results, chinese):
    lines = []
    for name, row in results["convert"]["rows"].items():
        title = f"`{name}`" if name != "numpy" else "read and written with NumPy"
        ratios = (f"{row[x]:.2f}" for x in ("ratio", "memory / file"))
        lines.append((title, f"{row['seconds']:.1f}", *ratios))
    columns = ("seconds", "ratio", "peak memory above the libraries' / file")
    return table(columns, lines, f"{results['convert']['megabytes']:.0f} MB")


# MB/s of the original generator of albert_zh, as in `benchmarks/pretrain_data.py`.
ORIGINAL = 0.18


def pretrain_data(results, chinese):
    rows = results["pretrain_data"]["rows"]
    rates = {name: row["MB/s"] for name, row in rows.items()}
    words = {"jieba alone": "只用 jieba 分词", "records": "生成数组"}
    words |= {", ": "，", "one core": "单核", " cores": " 核"}

    def titled(name):
        for english, text in words.items() if chinese else ():
            name = name.replace(english, text)
        return name

    lines = [
        [
            titled(name),
            f"{rate:.2f}",
            f"{rate / rates['jieba alone, one core']:.2f}",
            f"{rate / ORIGINAL:.1f}",
        ]
        for name, rate in rates.items()
    ]
    columns = (
        ("MB/s", "相对只用 jieba 分词", f"相对 albert_zh 的生成脚本（{ORIGINAL}）")
        if chinese
        else ("MB/s", "to jieba alone", f"to albert_zh's generator ({ORIGINAL})")
    )
    first = (
        "语料转 token 数组，512 个 token" if chinese else "text to records, 512 tokens"
    )
    return table(columns, lines, first)


def recipes(results, chinese):
    """Return the settings of fine-tuning by size and tokens, with memory and time."""
    lines = []
    for row in results["recipes"]["rows"].values():
        size = row["size"].removeprefix("albert_").removesuffix("_zh")
        lines.append(
            (
                f"{size}{'，' if chinese else ', '}{row['length']}",
                f"{row['batch_size']} × {row['batches_per_update']}",
                _rate_of_learning(row["learning_rate"]),
                f"{row['epochs of 1000']}, {row['epochs of 10000']}",
                f"{row['megabytes'] / 1e3:.1f} GB",
                *(f"{row[f'core_minutes of {x}']:,.0f}" for x in (1_000, 10_000)),
            )
        )
    columns = ("batch", "rate", "epochs", "memory")
    columns += ("core-minutes, 1,000 examples", "10,000 examples")
    if chinese:
        columns = ("批次", "学习率", "epoch", "内存")
        columns += ("核·分钟，1,000 条", "10,000 条")
    first = "规模，token 数" if chinese else "size, tokens"
    return table(columns, lines, first)


def _rate_of_learning(value):
    return f"{value:.0e}".replace("e-0", "e-")


def shares(results, chinese):
    """Return the rates of operations as shares of that of a matrix product."""
    engines = ("albert-tf", "ONNX Runtime float32", "transformers, sorted")
    lines = []
    for file, titles in CLASSIFIED.items():
        predicted = results[file]["predict"]
        title = _title(results[file], titles[chinese])
        cells = [predicted[x]["share"] for x in engines]
        cells.append(results[file]["fit"]["albert-tf"]["share"])
        lines.append([title, *(f"{x:.0%}" for x in cells)])
    names = ("`predict`", "ONNX Runtime", "transformers, sorted", "`fit`")
    return table(names, lines)


def optimizations(results, chinese):
    """Return the relative time and the memory of `fit` without each optimization."""
    rows = results["optimizations"]["rows"]
    lines = [
        (
            name,
            *(f"{x:.1f} GB" if "GB" in key else f"{x:.2f}" for key, x in row.items()),
        )
        for name, row in rows.items()
    ]
    columns = [x.removesuffix(", GB") for x in rows["nothing"]]
    return table(columns, lines, "without")


def pretraining(results, chinese):
    """Return the accuracy of the bundled checkpoint by the tokens read."""
    rows = results["bundled_training"]["rows"]
    start, end = "pretraining, ", " million tokens"
    lines = [
        [
            f"{int(name.removeprefix(start).removesuffix(end)):,}",
            *(f"{row[x]:.3f}" for x in ("masked tokens", "sentence order")),
        ]
        for name, row in rows.items()
        if name.startswith(start) and name.endswith(end)
    ]
    dev = rows["pretraining, dev"]
    scores = (f"{dev[x]:.3f}" for x in ("masked tokens", "sentence order"))
    lines.append(["dev, 15% masked", *scores])
    return table(("masked tokens", "sentence order"), lines, "million tokens read")


def bundled_heads(results, chinese):
    """Return the scores of the heads on sets of which they saw no label."""
    lines = [
        (name, f"{row['score']:.3f}", _rounded(row["baseline"]))
        for name, row in results["bundled_heads"]["rows"].items()
    ]
    for name, title in WRITTEN.items():
        row = results["bundled_sentences"][name]
        lines.append((title, f"{row['right']} of {row['of']}", ""))
    return table(("score", "baseline"), lines, "test set")


def _rounded(value):
    return "" if value is None else f"{value:.3f}"


def continued(results, chinese):
    """Return the accuracy before and after the training to 512 positions."""
    return _before_and_after(results, "continued, ")


def stage(results, chinese):
    """Return the same before and after the supervised stage."""
    return _before_and_after(results, "after the stage, ")


def _before_and_after(results, start):
    lines = [
        [name.removeprefix(start), *(f"{row[x]:.3f}" for x in ("before", "after"))]
        for name, row in results["bundled_training"]["rows"].items()
        if name.startswith(start)
    ]
    return table(("before", "after"), lines, "tokens")


def all_results(results, chinese):
    """Return the rows of every file."""
    parts = [LEGEND, ""]
    for name, found in sorted(results.items()):
        jobs = found.get("jobs") or {"": found}
        for job, part in jobs.items():
            parts += _rows(" ".join(filter(None, (name, job))), found, part)
    return "\n".join(parts).strip()


def _rows(title, found, part):
    yield from (f"## {title}", "", f"{_machine(found, part)}", "")
    rows = part.get("rows")
    if rows is None:
        rows = {x: {"value": y} for x, y in part.items() if isinstance(y, float)}
        rows.pop("load", None)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [
        [name, *(shown(row.get(x)) for x in columns)] for name, row in rows.items()
    ]
    yield table(columns, lines)
    yield ""


def _machine(found, part):
    if "recorded" in found:
        return " ".join(f"{x}: {y}." for x, y in found["recorded"].items())
    if "machine" not in found:
        return "The machine was not recorded."
    machine = found["machine"]
    text = f"{machine['processor']}, {machine['cores']} cores, load {found['load']:.1f}"
    if "matrix_gflops" in part:
        text += f", matrix product at {part['matrix_gflops']:.0f} GFLOP/s"
    return f"{text}."


def shown(value):
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


TABLES = {
    "predict": predict,
    "fit": fit,
    "avx2": avx2,
    "latency": latency,
    "engines": engines,
    "accuracy": accuracy,
    "accuracy_in_short": accuracy_in_short,
    "known_models": known_models,
    "speed_in_short": speed_in_short,
    "service": service,
    "int8": int8,
    "swapped_terms": swapped_terms,
    "early_exit": early_exit,
    "convert": convert,
    "pretrain_data": pretrain_data,
    "recipes": recipes,
    "shares": shares,
    "optimizations": optimizations,
    "pretraining": pretraining,
    "bundled_heads": bundled_heads,
    "continued": continued,
    "stage": stage,
    "results": all_results,
}
