// The contract of engines on the cuda engine with fake devices.

import { engineContract } from '../contract.js';
import { createFakeDevices } from './fake-devices.js';
import { createFakeEngine } from './fake-engine.js';

/** Two small devices and the fallback share the blocks, so that most answers are merged. */
engineContract('cuda', 'all', async () =>
  createFakeEngine(createFakeDevices([600_000, 900_000]), { idleMs: 0 }),
);
