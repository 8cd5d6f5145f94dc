// A fake device that returns the best columns of a product, a few rows at a time, and a program that runs on it.

import { TensorProgram } from '../../../src/engine/tensor/tensor-program.js';
import { createRandom, SEED } from '../blocks.js';
import { TopFloatDevice } from './float-device.js';

export const DIMENSION = 16;
export const CHUNK_ROWS = 256;
export const CHUNK_BYTES = (DIMENSION + 2) * CHUNK_ROWS * 4;

export function createDevice(isTf32 = false): TopFloatDevice {
  const device = new TopFloatDevice(createRandom(SEED));
  device.isTf32 = isTf32;
  device.chunkValuesMax = CHUNK_ROWS * DIMENSION;
  return device;
}

export function createProgram(device: TopFloatDevice, residentBytesMax = 2 ** 30): TensorProgram {
  return new TensorProgram(device, { residentBytesMax });
}
