/**
 * Tells why a machine could not load a publication: because of the publication, or because of something on the machine itself, which an
 * operator has to look for there.
 */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { MachineFailure } from '../cluster/rollout-decision.ts';
import type { StartError } from '../main/start-error.ts';

export type LoadFailureKind = Extract<MachineFailure['kind'], 'refused' | 'machine'>;

/**
 * Codes of errors about what a configuration only names: addresses of the machine, and files that every machine must have. Their contents
 * count, too, because a publication does not contain them.
 */
const MACHINE_CODES: ReadonlySet<string> = new Set([
	'listen',
	'log/output',
	'tls/unreadable-file',
	'tls/malformed-certificate',
	'tls/malformed-key',
	'tls/key-mismatch',
	'tls/bad-root',
	'tls/invalid-certificate',
	'tls/invalid-key',
	'auth/htpasswd-unreadable',
	'auth/htpasswd-invalid',
]);

/** Returns why a configuration with these diagnostics was refused: `machine` if all its errors are about the machine. */
export function kindOfRefusal(diagnostics: readonly DiagnosticReport[]): LoadFailureKind {
	const errors = diagnostics.filter(({ severity }) => severity === 'error');
	return errors.length > 0 && errors.every(({ code }) => MACHINE_CODES.has(code)) ? 'machine' : 'refused';
}

/** Returns why a process could not start. */
export function kindOfStartFailure({ failure }: StartError): LoadFailureKind {
	if (failure.reason === 'refused') return kindOfRefusal(failure.diagnostics);
	return failure.reason === 'listen' || failure.systemCode !== undefined ? 'machine' : 'refused';
}
