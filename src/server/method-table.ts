// Which methods a path takes, for the routes that the router did not find: 405 needs to know.

import type { Route } from './route.js';

/** In the order of the routes; empty when no route has the path. */
export function methodsAt(routes: readonly Route[], path: string): string[] {
  const methods = new Set<string>();
  for (const route of routes) {
    if (!patternOf(route).test(path)) continue;
    methods.add(route.method);
    if (route.method === 'GET') methods.add('HEAD');
  }
  return [...methods];
}

function patternOf({ path, isOperational }: Route): RegExp {
  const prefix = isOperational === true ? '' : '(?:/v1)?';
  const segments = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${prefix}${segments}$`);
}
