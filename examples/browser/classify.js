/* A text classifier in a page, computed in the browser.

A page has an element

  <section data-albert-model="model/"></section>

whose attribute names a directory written by

  albert-tf export MODEL examples/browser/model --format transformers.js

Other attributes: data-library="lib/" takes transformers.js from a directory instead of
a CDN, data-dtype="fp32" computes in float32 instead of int8, data-lazy loads the model
at the first key or click, data-text is a text to begin with, data-lang="zh" or "en".
What the element contains is shown below the error if the model cannot be loaded.
*/

const CDNS = ["https://cdn.jsdelivr.net/npm/", "https://unpkg.com/"];
const TRANSFORMERS = "@huggingface/transformers@4.3.1/dist/";
const RUNTIME = "onnxruntime-web@1.31.0-dev.20260914-8d85527a0/dist/";
// Each file of the library and its checksum, which the browser compares. The runtime is
// the one for processors: that for graphics cards has twice the size.
export const FILES = {
  library: [
    `${TRANSFORMERS}transformers.web.min.js`,
    "sha384-Wdo8O83tMYP9xRVBKFSxwMStkw0K4iY+FmChXm/4e//sv66vg68y2flNvmtx6bPH",
  ],
  runtime: [
    `${RUNTIME}ort.wasm.bundle.min.mjs`,
    "sha384-rb+zD6nKrYqdffKZxEFA2qD+Aq+gDcqQOJ7VEOAWUCsrlpRf6VALFrRzLPo/dt5J",
  ],
  wasm: [
    `${RUNTIME}ort-wasm-simd-threaded.wasm`,
    "sha384-LrOPe1yNsLVzhsriuQfxO06RWx/XakR0S8uiOMx7HVJP6N/IEaR1EAgJMFeTanif",
  ],
};
const WORDS = {
  zh: {
    input: "输入一段评论",
    note: "在你的设备上计算，输入的内容不会离开本页。",
    loading: "正在加载模型……",
    failed: "模型无法加载",
    time: (ms) => `用时 ${ms} 毫秒`,
    examples: ["房间很干净，下次还来", "等了一个小时才上菜，再也不来了"],
    labels: {},
  },
  en: {
    input: "Type a review in Chinese",
    note: "Computed on your device. What you type does not leave this page.",
    loading: "Loading the model …",
    failed: "The model could not be loaded",
    time: (ms) => `${ms} ms`,
    examples: ["房间很干净，下次还来", "等了一个小时才上菜，再也不来了"],
    labels: { 好评: "好评 (positive)", 差评: "差评 (negative)" },
  },
};
const STYLE = `
.albert-demo { max-width: 40em; margin: 1em 0; padding: 1em; line-height: 1.5;
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent);
  border-radius: .5em; }
.albert-demo label { display: block; font-weight: 600; margin-bottom: .4em; }
.albert-demo textarea { box-sizing: border-box; width: 100%; min-height: 5em;
  padding: .6em; font: inherit; font-size: max(1em, 16px); color: inherit;
  background: transparent; resize: vertical; border-radius: .3em;
  border: 1px solid color-mix(in srgb, currentColor 45%, transparent); }
.albert-demo textarea:focus-visible, .albert-demo button:focus-visible {
  outline: 2px solid #5c6bc0; outline-offset: 2px; }
.albert-demo button { font: inherit; font-size: .85em; color: inherit; cursor: pointer;
  margin: .4em .4em 0 0; padding: .3em .8em; border-radius: 1.2em;
  background: color-mix(in srgb, currentColor 8%, transparent);
  border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.albert-demo [role="status"] { min-height: 4.8em; margin: .8em 0 .3em; }
.albert-demo .row { display: grid; grid-template-columns: 8.6em 1fr 3.5em;
  gap: .6em; align-items: center; }
.albert-demo .row:first-child { font-weight: 600; }
.albert-demo .row > :last-child { text-align: right;
  font-variant-numeric: tabular-nums; }
.albert-demo .bar { height: .7em; border-radius: .35em; overflow: hidden;
  background: color-mix(in srgb, currentColor 12%, transparent); }
.albert-demo .bar > * { display: block; height: 100%; background: #5c6bc0; }
.albert-demo small { display: block; opacity: .75; }
`;

/* === The model === */

/** Return the function of a list of texts that returns labels and scores of each. */
export async function load({ model, library = "", dtype = "q8" }) {
  const { env, pipeline } = await loadLibrary(library);
  const directory = new URL(model, document.baseURI);
  const [, parent, name] = directory.pathname.match(/^(.*\/)([^/]+)\/?$/);
  env.allowLocalModels = true;
  env.allowRemoteModels = false;
  // An earlier model of this address may be in the cache.
  env.useBrowserCache = false;
  env.localModelPath = parent;
  const classify = await pipeline("text-classification", name, { dtype, device: "wasm" });
  const run = (texts) => classify(texts, { top_k: null });
  // The first call prepares more than the model.
  await run([" "]);
  return run;
}

async function loadLibrary(folder) {
  const names = Object.keys(FILES);
  const files = await Promise.all(names.map((name) => fetchFile(folder, ...FILES[name])));
  const [library, runtime, wasm] = files;
  // Modules with checked contents import each other by the addresses of these contents.
  const address = asModule(await runtime.text());
  const code = (await library.text()).replaceAll(
    /from"onnxruntime-(?:web\/webgpu|common)"/g,
    `from"${address}"`,
  );
  const found = await import(asModule(code));
  const settings = found.env.backends.onnx.wasm;
  // The runtime has its own loader of the binary.
  found.env.useWasmCache = false;
  settings.wasmPaths = undefined;
  // Others would need headers of the server, and load files that are not checked.
  settings.numThreads = 1;
  settings.wasmBinary = await wasm.arrayBuffer();
  return found;
}

async function fetchFile(folder, path, integrity) {
  const local = folder && new URL(folder + path.split("/").at(-1), document.baseURI);
  const addresses = folder ? [local] : CDNS.map((cdn) => cdn + path);
  const errors = [];
  for (const address of addresses) {
    try {
      const answer = await fetch(address, { integrity, referrerPolicy: "no-referrer" });
      if (answer.ok) return answer;
      errors.push(`${address}: ${answer.status}`);
    } catch (error) {
      errors.push(`${address}: ${error.message}`);
    }
  }
  throw new Error(errors.join(", "));
}

function asModule(code) {
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}

/* === The page === */

function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    created.setAttribute(name, value);
  }
  created.append(...children);
  return created;
}

/** Return a row of a label, its bar and its score. */
function row(label, score) {
  const percent = `${(100 * score).toFixed(1)}%`;
  const bar = element("span", { class: "bar", "aria-hidden": "true" }, element("span"));
  bar.firstChild.style.width = percent;
  const [name, number] = [label, percent].map((text) => element("span", {}, text));
  return element("div", { class: "row" }, name, bar, number);
}

function language(section) {
  const given = section.dataset.lang || document.documentElement.lang;
  return given.toLowerCase().startsWith("en") ? "en" : "zh";
}

/** Build the form in a section, in place of what it contains. */
export function start(section) {
  const { albertModel: model, library, dtype, text = "" } = section.dataset;
  const words = WORDS[language(section)];
  const content = [...section.childNodes];
  const input = element("textarea", { id: "albert-text", maxlength: 2000 });
  const status = element("div", { role: "status" });
  const buttons = words.examples.map((example) => {
    const button = element("button", { type: "button", lang: "zh" }, example);
    button.addEventListener("click", () => {
      input.value = example;
      answer();
    });
    return button;
  });
  let classify;
  let latest = 0;
  let timer;

  async function answer() {
    const asked = ++latest;
    const given = input.value.trim();
    try {
      if (!classify) {
        status.replaceChildren(words.loading);
        classify = load({ model, library, dtype });
      }
      const run = await classify;
      // Only the newest text is worth an answer.
      if (asked !== latest) return;
      if (!given) return status.replaceChildren();
      const begin = performance.now();
      const [found] = await run([given]);
      const time = words.time((performance.now() - begin).toFixed(1));
      const rows = found.map((x) => row(words.labels[x.label] ?? x.label, x.score));
      if (asked === latest) status.replaceChildren(...rows, element("small", {}, time));
    } catch (error) {
      console.error(error);
      // The next text tries again.
      classify = undefined;
      const message = element("p", { role: "alert" }, `${words.failed}: ${error.message}`);
      status.replaceChildren(message, ...content);
    }
  }

  input.value = text;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(answer, 100);
  });
  section.classList.add("albert-demo");
  const label = element("label", { for: input.id }, words.input);
  const note = element("small", {}, words.note);
  section.replaceChildren(label, input, ...buttons, status, note);
  if ("lazy" in section.dataset) input.addEventListener("focus", answer, { once: true });
  else answer();
}

if (typeof document !== "undefined") {
  const sections = document.querySelectorAll("[data-albert-model]");
  if (sections.length) document.head.append(element("style", {}, STYLE));
  sections.forEach(start);
}
