// The process of one GPU, or of a list of all GPUs: whatever the driver does can end or hang only this process.
//
//   node cuda-process.js ADDON serve    descriptors 3 and 4 are the channel; ends with the service
//   node cuda-process.js ADDON list     prints the facts of all GPUs as JSON, or why there are none

import { loadCudaAddon } from './cuda-kernels.js';

const [addonPath, task] = process.argv.slice(2);
const addon = loadCudaAddon(addonPath);
if (task === 'serve') {
  process.title = 'sagitta-gpu';
  addon.serve(3, 4);
  process.exit(0);
}
try {
  console.log(JSON.stringify({ devices: addon.list() }));
} catch (error) {
  console.log(JSON.stringify({ error: error instanceof Error ? error.message : String(error) }));
}
