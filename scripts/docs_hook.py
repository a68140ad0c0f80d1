"""Hook of mkdocs.yml: generated parts of pages, and links to files outside docs/.

A page contains the comment `<!-- promises -->`, `<!-- classifier -->` or
`<!-- include PATH -->`, which is replaced by its text. What stands between
`<!-- github -->` and `<!-- end -->` is left out.
"""

import ast
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import mkdocs.plugins
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Files of the repository that are included in a page.
PAGES = {
    "CHANGELOG.md": "about/changelog.md",
    "benchmarks/results/README.md": "about/figures.md",
    "examples/albert_micro_zh/README.md": "checkpoints/bundled_model.md",
    "examples/albert_micro_zh/TRAINING.md": "checkpoints/bundled_training.md",
}
# Files of the repository that are copied to the site.
FILES = (
    "benchmarks/results/*.png",
    "examples/albert_micro_zh*/*.png",
    "examples/browser/classify.js",
    "notebooks/*.ipynb",
)
# The head of the first page, and its directory in the site.
MODEL = "albert_micro_zh:sentiment"
MODEL_FOLDER = "examples/browser/model"
CLASSIFIER = """\
<section data-albert-model="{root}{model}/" data-lang="{language}" data-lazy>
<noscript>{missing}</noscript>
</section>
<script type="module" src="{root}examples/browser/classify.js"></script>
"""
# What only GitHub shows.
NOT_SHOWN = re.compile(r"<!-- github -->.*?<!-- end -->\n*", re.S)


# After i18n, which reads all files from docs/.
@mkdocs.plugins.event_priority(-100)
def on_files(files, config):
    """Add the images and notebooks outside docs/."""
    for pattern in FILES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, content in _model_files().items():
        path = f"{MODEL_FOLDER}/{name}"
        files.append(File.generated(config, path, content=content))
    return files


# Once, when pages are served and built again.
@functools.cache
def _model_files():
    """Return the files that the first page needs of a model, exported now."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model")
        command = [sys.executable, "-m", "albert_tf_cli", "export", MODEL, str(path)]
        command += ["--format", "transformers.js"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise PluginError(f"No model to show:\n{done.stderr}")
        names = ("config.json", "tokenizer.json", "tokenizer_config.json")
        names += ("onnx/model_quantized.onnx",)
        return {name: (path / name).read_bytes() for name in names}


def on_page_markdown(markdown, page, config, files):
    """Replace the comments, and point links to files outside docs/ to their copies."""
    folder = pathlib.PurePosixPath("docs", page.file.src_uri).parent
    text = re.sub(r"<!-- include (\S+) -->", lambda x: _include(x[1], folder), markdown)
    text = NOT_SHOWN.sub("", text)
    is_chinese = page.file.src_uri.endswith(".zh.md")
    text = text.replace("<!-- classifier -->", _classifier(page, is_chinese))
    if "<!-- promises -->" in text:
        text = text.replace("<!-- promises -->", _promises())
    if is_chinese:
        # On GitHub, Chinese pages link to Chinese ones; the site finds them itself.
        text = re.sub(r"(\]\((?!\w+:)[^)#]+)\.zh\.md", r"\1.md", _joined(text))
    return re.sub(r"\]\((\.\./[^)#]+)", lambda x: f"]({_target(x[1], folder)}", text)


def _joined(text):
    """Join the lines of Chinese paragraphs: a line end would show as a space."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    wide = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef“”]"
    end = rf"(?<={wide})\n *(?={wide})|(?<=[，。；：、（）])\n *(?=[\w`\[])"
    parts[::2] = [re.sub(end, "", part) for part in parts[::2]]
    return "".join(parts)


def _include(name, folder):
    """Return a file without front matter and title, with links relative to a folder."""
    path = pathlib.PurePosixPath(name)
    text = (ROOT / path).read_text("utf-8")
    text = re.sub(r"\A(---\n.*?\n---\n\n)?# .*?\n\n", "", text, flags=re.DOTALL)

    def moved(match):
        link = os.path.relpath(os.path.normpath(path.parent / match[1]), folder)
        return f"]({link}"

    return re.sub(r"\]\((?!\w+:|#)([^)#]+)", moved, text)


def _target(link, folder):
    """Return the link to the copy in the site of a file outside docs/."""
    path = os.path.normpath(folder / link)
    if path.startswith("docs/"):
        return link
    return os.path.relpath(f"docs/{PAGES.get(path, path)}", folder)


def _classifier(page, is_chinese):
    """Return a form that classifies in the browser."""
    return CLASSIFIER.format(
        root="../" * page.url.count("/"),
        model=MODEL_FOLDER,
        language="zh" if is_chinese else "en",
        missing="在线示例需要 JavaScript。" if is_chinese else "It needs JavaScript.",
    )


def _promises():
    """Return the names of all tests as sentences, by file."""
    parts = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        title, _, _ = (ast.get_docstring(tree) or "").partition("\n")
        parts.append(f"## {file.relative_to(ROOT)}\n\n{title}\n")
        of_file = [x.value for x in tree.body if _is_mark_of_file(x)]
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = " ".join(map(ast.unparse, (*of_file, *node.decorator_list)))
                found = re.findall(r"mark\.(slow|nightly|peers|released)\b", marks)
                tier = f" ({', '.join(dict.fromkeys(found))})" if found else ""
                name = node.name.removeprefix("test_").replace("_", " ")
                parts.append(f"- {name}{tier}")
        parts.append("")
    return "\n".join(parts)


def _is_mark_of_file(node):
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
