// Decodes Zstandard frames with the official decoder, compiled to WebAssembly (package zstddec). The package compiles
// it asynchronously and keeps one instance, whose memory only grows. This file therefore takes the compiled module and
// creates instances itself: a module can be sent to a worker thread, where an instance takes 0.1 ms, and an instance
// that has grown too much is dropped.

import { ZSTDDecoder } from 'zstddec';

/** The compiled decoder: a WebAssembly.Module, which structured clone shares between threads. */
export type ZstdModule = object;

interface Instance {
  readonly exports: {
    readonly memory: { readonly buffer: ArrayBuffer };
    /** Returns 0 if no memory is left. */
    malloc(byteCount: number): number;
    free(pointer: number): void;
    /** Returns the bytes written, or an error for `ZSTD_isError`. */
    ZSTD_decompress(
      target: number,
      targetBytes: number,
      source: number,
      sourceBytes: number,
    ): number;
    ZSTD_isError(result: number): number;
  };
}

/** TypeScript declares WebAssembly only in its browser libraries. */
declare const WebAssembly: {
  readonly Instance: new (module: ZstdModule, imports: object) => Instance;
};

/** An instance that has grown beyond this is dropped. It starts with 17 MB, most of them never touched. */
const KEPT_MEMORY_BYTES_MAX = 32 * 1024 * 1024;

/** Error codes of zstd_errors.h. */
const ERRORS: { readonly [code: number]: string } = {
  10: 'not a Zstandard frame',
  16: 'a window that is too large',
  20: 'corrupted data',
  22: 'a wrong checksum',
  32: 'an unknown dictionary',
  64: 'out of memory',
  70: 'more bytes than announced',
  72: 'incomplete frame',
};

class ModuleLoader extends ZSTDDecoder {
  static module: ZstdModule;

  /** Called with the result of WebAssembly.instantiate. */
  override _init(result: { readonly module: ZstdModule }): void {
    ModuleLoader.module = result.module;
  }
}

/** The first call compiles the decoder, which takes about 60 ms. */
export async function loadZstd(): Promise<ZstdModule> {
  await new ModuleLoader().init();
  return ModuleLoader.module;
}

/** The instance of this thread. */
let kept: Instance | null = null;

/**
 * Writes the content of the frames to the start of `target` and returns its length in bytes. Throws an Error if a
 * frame is damaged or its content does not fit.
 */
export function decodeZstd(module: ZstdModule, frames: Uint8Array, target: Uint8Array): number {
  const instance =
    kept ?? new WebAssembly.Instance(module, { env: { emscripten_notify_memory_growth() {} } });
  // The instance is kept again at the end, unless it traps or runs out of memory.
  kept = null;
  const { memory, malloc, free, ZSTD_decompress, ZSTD_isError } = instance.exports;
  const source = malloc(frames.length);
  const output = malloc(target.length);
  if (source === 0 || output === 0) throw new Error('out of memory');
  new Uint8Array(memory.buffer).set(frames, source);
  const result = ZSTD_decompress(output, target.length, source, frames.length);
  const isError = ZSTD_isError(result) !== 0;
  // The memory may have grown during the call, which replaces the buffer.
  if (!isError) target.set(new Uint8Array(memory.buffer, output, result));
  free(source);
  free(output);
  if (memory.buffer.byteLength <= KEPT_MEMORY_BYTES_MAX) kept = instance;
  if (isError) throw new Error(ERRORS[-result] ?? `Zstandard error ${-result}`);
  return result;
}
