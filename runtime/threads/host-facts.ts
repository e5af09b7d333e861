/** What placeholders can tell of the machine and the process. */
import { hostname } from 'node:os';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';

/** Facts for `{env.*}` and `{system.*}`. */
export function hostFacts(
	workingDirectory: string,
	environment: { readonly [name: string]: string | undefined },
	stopsAt?: () => number,
): HostFacts {
	return {
		hostname: hostname(),
		os: process.platform,
		// The name that the compatible server gives it.
		arch: process.arch === 'x64' ? 'amd64' : process.arch,
		workingDirectory,
		...(stopsAt && { stopsAt }),
		env: name => (Object.hasOwn(environment, name) ? environment[name] : undefined),
	};
}
