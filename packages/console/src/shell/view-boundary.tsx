// Shows the error of a view in its place, so that the rest of the console keeps working; navigation clears
// it. After an upgrade of the server, an open page refers to code files that no longer exist and has to be
// reloaded.

import { Component, type ReactNode } from 'react';
import { Button } from '../ui/button.js';
import { PageContent } from '../ui/panel.js';
import { Empty, ErrorMessage } from '../ui/states.js';

interface State {
  readonly error: unknown;
}

export class ViewBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: undefined };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override componentDidMount() {
    window.addEventListener('hashchange', this.reset);
  }

  override componentWillUnmount() {
    window.removeEventListener('hashchange', this.reset);
  }

  readonly reset = () => this.setState({ error: undefined });

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <PageContent>
        {isMissingCode(error) ? <Reload /> : <ErrorMessage error={error} onRetry={this.reset} />}
      </PageContent>
    );
  }
}

/** The wording differs between browsers. */
function isMissingCode(error: unknown): boolean {
  return error instanceof Error && /dynamically imported module|module script/.test(error.message);
}

function Reload() {
  return (
    <Empty title="This part of the console could not be loaded">
      <p>The server may have been upgraded since the page was opened.</p>
      <Button kind="primary" onClick={() => location.reload()}>
        Reload the page
      </Button>
    </Empty>
  );
}
