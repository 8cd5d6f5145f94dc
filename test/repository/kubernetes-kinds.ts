// The types of the Kubernetes objects in deploy/kubernetes, which the compiler compares the manifests with.

import type { StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap, Namespace, Service } from 'kubernetes-types/core/v1.js';
import type { LabelSelector, ObjectMeta } from 'kubernetes-types/meta/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';

interface SecretKey {
  readonly name: string;
  readonly key: string;
}

/**
 * The fields we use of the Prometheus operator's custom resource. They follow its API reference, as no package has
 * them.
 */
interface ServiceMonitor {
  readonly apiVersion: 'monitoring.coreos.com/v1';
  readonly kind: 'ServiceMonitor';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly selector: LabelSelector;
    readonly endpoints: readonly {
      readonly port: string;
      readonly path?: string;
      readonly scheme?: 'http' | 'https';
      readonly interval?: `${number}${'s' | 'm' | 'h'}`;
      readonly authorization?: { readonly type?: string; readonly credentials: SecretKey };
      readonly tlsConfig?: {
        readonly serverName?: string;
        readonly ca?: { readonly secret: SecretKey } | { readonly configMap: SecretKey };
      };
    }[];
  };
}

/** Types of objects by apiVersion and kind. */
export interface Kinds {
  readonly 'apps/v1 StatefulSet': StatefulSet;
  readonly 'v1 ConfigMap': ConfigMap;
  readonly 'v1 Namespace': Namespace;
  readonly 'v1 Service': Service;
  readonly 'networking.k8s.io/v1 NetworkPolicy': NetworkPolicy;
  readonly 'policy/v1 PodDisruptionBudget': PodDisruptionBudget;
  readonly 'monitoring.coreos.com/v1 ServiceMonitor': ServiceMonitor;
}
