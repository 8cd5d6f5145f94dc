// What the API reference consists of: paths that are served, and the file at each of them.

export interface DocsFile {
  readonly path: string;
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

export const DOCS_PREFIX = '/docs';

/** The files of the page, and the OpenAPI document in the formats that it links to. */
export const DOCS_PATHS: readonly string[] = [
  '',
  '/',
  '/json',
  '/yaml',
  '/static/index.css',
  '/static/swagger-ui.css',
  '/static/swagger-ui-bundle.js',
  '/static/swagger-ui-standalone-preset.js',
  '/static/swagger-initializer.js',
  '/static/theme/icon.svg',
].map((path) => DOCS_PREFIX + path);
