/** Facts about the machine and process for placeholders. */
import { hostname } from 'node:os';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';

/** Returns the facts about the machine and the process that `{env.*}` and `{system.*}` stand for. */
export function hostFacts(
	workingDirectory: string,
	environment: { readonly [name: string]: string | undefined },
	stopsAt?: () => number,
): HostFacts {
	return {
		hostname: hostname(),
		os: process.platform,
		// The name that Caddy uses for the architecture.
		arch: process.arch === 'x64' ? 'amd64' : process.arch,
		workingDirectory,
		...(stopsAt && { stopsAt }),
		env: name => (Object.hasOwn(environment, name) ? environment[name] : undefined),
	};
}
