// Keys

import { Page } from '../../ui/panel.js';

export default function KeysView() {
  return <Page title="Keys">{null}</Page>;
}
