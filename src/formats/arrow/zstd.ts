// Decodes Zstandard frames with the official decoder, compiled to WebAssembly (package zstddec). The
// package compiles it asynchronously and keeps one instance whose memory only grows, so this file
// takes the compiled module and makes instances itself: a module can be sent to a worker thread,
// where an instance takes 0.1 ms, and an instance that has grown is dropped.

import { ZSTDDecoder } from 'zstddec';

/** The compiled decoder: a WebAssembly.Module, which structured clone shares between threads. */
export type ZstdModule = object;

interface Instance {
  readonly exports: {
    readonly memory: { readonly buffer: ArrayBuffer };
    /** 0 when there is no memory left. */
    malloc(byteCount: number): number;
    free(pointer: number): void;
    /** Bytes written, or an error for `ZSTD_isError`. */
    ZSTD_decompress(
      target: number,
      targetBytes: number,
      source: number,
      sourceBytes: number,
    ): number;
    ZSTD_isError(result: number): number;
  };
}

/** TypeScript declares WebAssembly only in its libraries for browsers. */
declare const WebAssembly: {
  readonly Instance: new (module: ZstdModule, imports: object) => Instance;
};

/** An instance that has grown beyond is dropped. It starts with 17 MB, most of it never touched. */
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

  /** Called with what WebAssembly.instantiate returned. */
  override _init(result: { readonly module: ZstdModule }): void {
    ModuleLoader.module = result.module;
  }
}

/** The first call compiles the decoder, in about 60 ms. */
export async function loadZstd(): Promise<ZstdModule> {
  await new ModuleLoader().init();
  return ModuleLoader.module;
}

/** The instance of this thread. */
let kept: Instance | null = null;

/**
 * Writes what the frames hold to the start of `target` and returns its length in bytes. Throws an
 * Error when a frame is damaged or holds more than `target` can take.
 */
export function decodeZstd(module: ZstdModule, frames: Uint8Array, target: Uint8Array): number {
  const instance =
    kept ?? new WebAssembly.Instance(module, { env: { emscripten_notify_memory_growth() {} } });
  // Kept again at the end, unless it traps or runs out of memory before.
  kept = null;
  const { memory, malloc, free, ZSTD_decompress, ZSTD_isError } = instance.exports;
  const source = malloc(frames.length);
  const output = malloc(target.length);
  if (source === 0 || output === 0) throw new Error('out of memory');
  new Uint8Array(memory.buffer).set(frames, source);
  const result = ZSTD_decompress(output, target.length, source, frames.length);
  const isError = ZSTD_isError(result) !== 0;
  // The memory may have grown during the call, which replaces its buffer.
  if (!isError) target.set(new Uint8Array(memory.buffer, output, result));
  free(source);
  free(output);
  if (memory.buffer.byteLength <= KEPT_MEMORY_BYTES_MAX) kept = instance;
  if (isError) throw new Error(ERRORS[-result] ?? `Zstandard error ${-result}`);
  return result;
}
