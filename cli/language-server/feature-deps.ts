/** The dependencies of the language server's request handlers. */
import type { Workspace } from '../../compiler/queries/workspace.ts';
import type { DiagnosticsPublisher } from './diagnostics.ts';
import type { Documents } from './documents.ts';

export interface FeatureDeps {
	readonly documents: Documents;
	readonly getWorkspace: () => Workspace;
	readonly publisher: DiagnosticsPublisher;
	/** Reports whether the client can create files; false until the client has announced its capabilities. */
	readonly canCreateFiles: () => boolean;
}
