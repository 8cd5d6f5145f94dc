// The traffic that the server has kept: intervals of the last hour, collections and the slowest queries.

import { maySeeCollection } from '../../common/access.js';
import type { Route, RouteServices } from '../requests/route.js';
import { propertyName } from '../wire/property-names.js';
import { defineJsonRoute } from './json-route.js';

export function trafficRoutes(services: RouteServices): Route[] {
  const { forwarder, schemas, slowestQueries, traffic } = services;
  return [
    defineJsonRoute(services, {
      method: 'GET',
      path: '/traffic',
      operationId: 'getTraffic',
      tag: 'Service',
      summary: 'Read the traffic of the last hour and its slowest queries',
      description:
        'Kept in memory since the start, at most for an hour. Requests for probes, metrics, limits and this route do not count. Names only collections that the caller has a scope for. Each node of a cluster answers for itself: a request is counted by the node that received it and by the node that carried it out, queries and writes by the latter.',
      access: { scope: 'metrics:read', on: 'service' },
      query: schemas.traffic.query,
      body: null,
      reply: schemas.traffic.traffic,
      errors: ['limit_exceeded'],
      isAlwaysServed: true,
      handle({ principal, query: { minutes } }) {
        const isVisible = (id: string) => maySeeCollection(principal, id);
        const { intervals, collections } = traffic.read(minutes, isVisible);
        return {
          node: forwarder?.cluster.health.status.self.node ?? null,
          intervals: intervals.map(({ startMs, ...interval }) => ({
            ...interval,
            time: timeOf(startMs, traffic.nowMs),
          })),
          collections,
          slowQueries: slowestQueries
            .list(minutes, isVisible)
            .map(({ endedAtMs, line, ...query }) => ({
              ...query,
              ...propertiesOf(line),
              time: timeOf(endedAtMs, slowestQueries.nowMs),
            })),
        };
      },
    }),
  ];
}

/** Unix time of a moment of a monotonic clock, so that a step of the system clock leaves no gap. */
function timeOf(monotonicMs: number, nowMs: () => number): string {
  return new Date(Date.now() + monotonicMs - nowMs()).toISOString();
}

function propertiesOf(line: object): object {
  return Object.fromEntries(
    Object.entries(line).map(([name, value]) => [propertyName(name), value]),
  );
}
