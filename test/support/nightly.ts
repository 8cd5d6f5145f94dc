// Whether this is the nightly run, which runs every test and more rounds of random ones. The name of a test file says
// in which run it takes part: *.test.ts, *.ci.test.ts or *.nightly.test.ts.

export const IS_NIGHTLY = process.env.SAGITTA_TEST_NIGHTLY === '1';
