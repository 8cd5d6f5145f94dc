// Finds and loads TensorFlow's binding for Node. It must share the environment of the process, which the library reads
// when it is loaded.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { packageFile } from '../common/package-files.js';
import { hasNvidiaDriver, NO_DRIVER } from './nvidia-driver.js';

/** scripts/install-tensorflow.mjs installs the package in this folder. */
const INSTALLED = packageFile('build/tensorflow/package.json');

const PACKAGE = '@tensorflow/tfjs-node-gpu';

/** Variables that the library reads when it is loaded. Values set by the operator are kept. */
const ENVIRONMENT = {
  // Full float32 products. Otherwise, cuBLAS multiplies as TF32 on Ampere and later GPUs.
  NVIDIA_TF32_OVERRIDE: '0',
  // Allocate GPU memory as needed instead of all of it.
  TF_FORCE_GPU_ALLOW_GROWTH: 'true',
  // Errors only.
  TF_CPP_MIN_LOG_LEVEL: '2',
};

/** Returns why TensorFlow cannot be used, determined without loading it; null if it may be usable. */
export function unavailableReason({ needsGpu }: { readonly needsGpu: boolean }): string | null {
  if (needsGpu && !hasNvidiaDriver()) return NO_DRIVER;
  try {
    createPackageRequire().resolve(PACKAGE);
    return null;
  } catch {
    return 'TensorFlow is not installed; run `node scripts/install-tensorflow.mjs`';
  }
}

/**
 * Loads and starts the binding, whose members the caller declares, so that the build does not need the package. Rejects
 * with a message for an operator when it is not installed or does not load.
 */
export async function loadTensorflow<Binding>(): Promise<Binding> {
  for (const [name, value] of Object.entries(ENVIRONMENT)) process.env[name] ??= value;
  const tf = requireBinding() as { enableProdMode(): void; ready(): Promise<void> };
  tf.enableProdMode();
  await tf.ready();
  return tf as Binding;
}

/** Resolves packages from the install script's folder if it exists, otherwise from node_modules. */
function createPackageRequire(): NodeJS.Require {
  return createRequire(existsSync(INSTALLED) ? INSTALLED : import.meta.url);
}

function requireBinding(): unknown {
  const require = createPackageRequire();
  const util = require('node:util') as { isNullOrUndefined?: (value: unknown) => boolean };
  // The binding calls this function, which Node 23 removed.
  util.isNullOrUndefined ??= (value) => value === null || value === undefined;
  try {
    return require(PACKAGE);
  } catch (error) {
    const cause = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new Error(
      `TensorFlow is not installed or does not load (${cause}); run \`node scripts/install-tensorflow.mjs\``,
    );
  }
}
