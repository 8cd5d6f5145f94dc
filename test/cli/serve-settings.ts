// Settings and output that the tests of `sagitta serve` and `sagitta demo` share.

/** The line on stdout when the server listens. */
export const LISTENING = /listening on (http:\S+?)\. /;

/** Variables for a server that starts fast: one thread, the reference engine, and any free port. */
export function serverVariables(
  directory: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    SAGITTA_PORT: '0',
    SAGITTA_DATA_DIR: directory,
    SAGITTA_ENGINE: 'reference',
    SAGITTA_THREADS: '1',
    SAGITTA_LOG_LEVEL: 'silent',
    ...more,
  };
}
