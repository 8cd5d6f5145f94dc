/** The exit code of a server of a test that could not start as things were: EX_TEMPFAIL of sysexits.h. */
export const START_AGAIN = 75;
