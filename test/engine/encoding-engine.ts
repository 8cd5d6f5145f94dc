// The tests' way to the engine that encodes.

export { withCodes } from '../../src/tools/selftest/encoding-engine.js';
