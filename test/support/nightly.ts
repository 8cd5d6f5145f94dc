// Tells whether this is the nightly run, in which every test runs and random ones do more rounds. In which run
// a test file takes part is said by its name: *.test.ts, *.ci.test.ts or *.nightly.test.ts.

export const IS_NIGHTLY = process.env.SAGITTA_TEST_NIGHTLY === '1';
