/** What is real when a configuration's tests are run or a request is explained: the files, the machine and the environment. */
import type { LeaseKinds } from '../compiler/exchange/leases.ts';
import type { RehearsalSurroundings } from '../compiler/rehearsal/rehearsal.ts';
import { createFileReader } from './files/file-reader.ts';
import { hostFacts } from './host-facts.ts';

/** The surroundings of this process. Nothing in them opens a socket. */
export function rehearsalSurroundings(workingDirectory: string): RehearsalSurroundings {
	const files = createFileReader();
	return {
		facts: hostFacts(workingDirectory, process.env),
		lease<K extends keyof LeaseKinds>(kind: K): LeaseKinds[K]['lease'] | undefined {
			return kind === 'files' ? (files as LeaseKinds[K]['lease']) : undefined;
		},
	};
}
