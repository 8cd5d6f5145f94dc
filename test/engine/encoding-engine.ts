// The tests' way to the engine that encodes.

export { withCodes } from '../../src/selftest/encoding-engine.js';
