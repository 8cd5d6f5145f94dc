// A thread that makes the files of the API reference: it requests each of them once from Swagger UI, in an application
// of its own. `workerData`: the OpenAPI document.

import { parentPort, workerData } from 'node:worker_threads';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import Fastify from 'fastify';
import type { OpenAPIV3 } from 'openapi-types';
import { assert } from '../../common/errors.js';
import { packageVersion } from '../../common/package-files.js';
import { DOCS_PATHS, DOCS_PREFIX, type DocsFile } from './docs-files.js';

/** That of the console, which may not be installed. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
  <title>Sagitta</title>
  <rect width="32" height="32" rx="7" fill="#2f5bea" />
  <path d="M8 24 22 10M14 9h9v9" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round" stroke-linejoin="round" />
  <circle cx="9" cy="23" r="2.6" fill="#fff" />
</svg>
`;

/** Without Swagger's bar, which has its logo, and with the list of all schemas folded. */
const UI = { layout: 'BaseLayout', defaultModelsExpandDepth: 0 } as const;

const THEME = {
  title: `Sagitta ${packageVersion()}: API reference`,
  favicon: [
    { filename: 'icon.svg', rel: 'icon', type: 'image/svg+xml', sizes: 'any', content: ICON },
  ],
};

async function makeFiles(document: OpenAPIV3.Document): Promise<DocsFile[]> {
  const maker = Fastify({ logger: false });
  await maker.register(swagger, { mode: 'static', specification: { document } });
  await maker.register(swaggerUi, { routePrefix: DOCS_PREFIX, theme: THEME, uiConfig: UI });
  const files: DocsFile[] = [];
  for (const path of DOCS_PATHS) {
    const { statusCode, headers, rawPayload } = await maker.inject(path);
    assert(statusCode === 200, `Swagger UI has ${path}`);
    files.push({ path, contentType: String(headers['content-type']), bytes: rawPayload });
  }
  await maker.close();
  return files;
}

makeFiles(workerData as OpenAPIV3.Document).then((files) => parentPort!.postMessage(files));
