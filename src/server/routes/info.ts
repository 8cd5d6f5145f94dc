// Describes the service to programs, and redirects browsers to the console.

import { packageVersion } from '../../common/package-files.js';
import { CONSOLE_PATH } from '../pages/console.js';
import { redirectTo } from '../pages/static-folder.js';
import { defineRoute, type Route } from '../requests/route.js';
import { serviceSchemas } from '../schemas/service.js';
import { chooseType, HTML_TYPE, JSON_TYPE } from '../wire/media-types.js';
import { jsonReply } from '../wire/reply.js';

/** The reply depends on Accept: a cache must not serve a browser's redirect to a program. */
const VARY = { vary: 'accept' };

/** `hasConsole` is whether the console is served and has been built. */
export function infoRoutes(hasConsole: boolean): Route[] {
  const info = JSON.stringify(describeService(hasConsole));
  return [
    defineRoute({
      method: 'GET',
      path: '/',
      operationId: 'getService',
      tag: 'Service',
      summary: 'Describe the service',
      description:
        'Redirects to the console instead if `Accept` prefers `text/html` and the console is available.',
      access: 'public',
      body: null,
      reply: serviceSchemas.info,
      redirects: 'To the console, for browsers.',
      errors: [],
      isAlwaysServed: true,
      isOperational: true,
      handle({ headers }) {
        const isBrowser = chooseType(headers.accept, [JSON_TYPE, HTML_TYPE]) === HTML_TYPE;
        if (!isBrowser || !hasConsole) return jsonReply(info, VARY);
        const redirect = redirectTo(CONSOLE_PATH);
        return { ...redirect, headers: { ...redirect.headers, ...VARY } };
      },
    }),
  ];
}

function describeService(hasConsole: boolean) {
  return {
    name: 'Sagitta',
    version: packageVersion(),
    api: 'v1',
    console: hasConsole ? CONSOLE_PATH : null,
    docs: 'docs/',
    openapi: 'openapi.json',
    ready: 'readyz',
  };
}
