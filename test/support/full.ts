// Tells whether all tests run (`npm run test:full`) or only those that take seconds (`npm test`).

export const IS_FULL = process.env.SAGITTA_TEST_FULL === '1';
