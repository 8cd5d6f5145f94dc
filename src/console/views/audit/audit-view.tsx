// Audit

import { Page } from '../../ui/panel.js';

export default function AuditView() {
  return <Page title="Audit">{null}</Page>;
}
