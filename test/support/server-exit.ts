/** The exit code of a test server that could not start for a temporary reason: EX_TEMPFAIL of sysexits.h. */
export const START_AGAIN = 75;
