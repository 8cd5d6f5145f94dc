// Products by the kernels in place of those of the WebAssembly backend, for every shape and option.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import {
  fused,
  matMul,
  type Rank,
  randomNormal,
  type Tensor,
  tensor1d,
} from '@tensorflow/tfjs-core';
import { useNativeProducts } from '../../src/platform/native-products.js';
import { startWasmBackend } from '../../src/platform/wasm-backend.js';

const TOLERANCE = 1e-4;

interface Case {
  readonly left: readonly number[];
  readonly right: readonly number[];
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
}

const CASES: Readonly<Record<string, Case>> = {
  'single numbers': { left: [1, 1], right: [1, 1] },
  matrices: { left: [23, 70], right: [70, 33] },
  'a transposed right matrix': { left: [23, 70], right: [33, 70], transposeB: true },
  'a transposed left matrix': { left: [70, 23], right: [70, 33], transposeA: true },
  'several matrices': { left: [5, 3, 7], right: [5, 7, 2] },
  'heads of texts': { left: [2, 4, 22, 64], right: [2, 4, 22, 64], transposeB: true },
  'one matrix for several': { left: [5, 3, 7], right: [1, 7, 2] },
};

describe('products by the kernels', () => {
  before(async () => {
    await startWasmBackend({ isSingleThreaded: true });
    assert.ok(useNativeProducts());
  });

  for (const [name, shapes] of Object.entries(CASES)) {
    const { transposeA = false, transposeB = false } = shapes;
    it(`multiply ${name}`, () => {
      const a = randomTensor(shapes.left, 1);
      const b = randomTensor(shapes.right, 2);
      const { shape, values } = productsOf(a, b, transposeA, transposeB);
      const found = matMul(a, b, transposeA, transposeB);
      assert.deepEqual(found.shape, shape);
      requireClose(found, values);
      // The backend forgets bias and activation when the left matrix is transposed.
      if (transposeA || shape.length > 2) return;
      const columns = shape.at(-1)!;
      const biases = Array.from({ length: columns }, (_, i) => (i % 5) - 2);
      const bias = tensor1d(biases);
      for (const [activation, finish] of [
        ['linear', (value: number) => value],
        ['relu', (value: number) => Math.max(value, 0)],
      ] as const) {
        const options = { a, b, transposeA, transposeB, activation };
        requireClose(fused.matMul(options), values.map(finish));
        const added = values.map((value, i) => finish(value + biases[i % columns]!));
        requireClose(fused.matMul({ ...options, bias }), added);
      }
    });
  }
});

function randomTensor(shape: readonly number[], seed: number): Tensor<Rank> {
  return randomNormal([...shape], 0, 1, 'float32', seed);
}

function requireClose(found: Tensor<Rank>, expected: Float64Array): void {
  const values = found.dataSync();
  assert.equal(values.length, expected.length);
  const error = Math.max(...values.map((value, i) => Math.abs(value - expected[i]!)));
  assert.ok(error < TOLERANCE, `error ${error}`);
}

/** The products in float64. */
function productsOf(a: Tensor<Rank>, b: Tensor<Rank>, transposeA: boolean, transposeB: boolean) {
  const [left, right] = [a.dataSync(), b.dataSync()];
  const [aRows, aColumns] = a.shape.slice(-2) as [number, number];
  const [bRows, bColumns] = b.shape.slice(-2) as [number, number];
  const [rows, inner] = transposeA ? [aColumns, aRows] : [aRows, aColumns];
  const columns = transposeB ? bRows : bColumns;
  const shape = [...a.shape.slice(0, -2), rows, columns];
  const values = new Float64Array(shape.reduce((product, size) => product * size, 1));
  for (const at of values.keys()) {
    const column = at % columns;
    const row = Math.floor(at / columns) % rows;
    const matrix = Math.floor(at / columns / rows);
    const from = matrix * rows * inner;
    const to = b.size === inner * columns ? 0 : matrix * inner * columns;
    for (let i = 0; i < inner; i++) {
      const value = left[from + (transposeA ? i * aColumns + row : row * aColumns + i)]!;
      values[at]! +=
        value * right[to + (transposeB ? column * bColumns + i : i * bColumns + column)]!;
    }
  }
  return { shape, values };
}
