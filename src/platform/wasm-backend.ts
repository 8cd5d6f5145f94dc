// Starts the WebAssembly backend of TensorFlow.js. Its operations block, so this belongs in a thread of its own.

import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
import { enableProdMode, env, ready, setBackend } from '@tensorflow/tfjs-core';

/**
 * Makes WebAssembly the backend of this thread's TensorFlow.js. With `isSingleThreaded`, operations start no threads.
 * Rejects when WebAssembly is not supported or files of the package are missing.
 */
export async function startWasmBackend({ isSingleThreaded = false } = {}): Promise<void> {
  const require = createRequire(import.meta.url);
  // The binaries are next to the package's entry point, where the backend does not look for them in Node.
  setWasmPaths(`${dirname(require.resolve('@tensorflow/tfjs-backend-wasm'))}/`);
  if (isSingleThreaded) env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  enableProdMode();
  if (!(await setBackend('wasm'))) throw new Error('the WebAssembly backend did not start');
  await ready();
}
