/**
 * Determines why a machine could not load a publication: because of an error in the publication, or because of a problem on the
 * machine, such as an occupied port or an unreadable file, which has to be solved there.
 */
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { MachineFailure } from '../cluster/rollout-decision.ts';
import type { StartError } from '../main/start-error.ts';

export type LoadFailureKind = Extract<MachineFailure['kind'], 'refused' | 'machine'>;

/**
 * Codes of errors whose cause is on the machine: addresses to listen on, and files that the configuration only refers to by path.
 * The contents of these files are included, because they are not part of a publication. Certificates and log outputs that are wrong
 * in the configuration itself have other codes: `tls/invalid-inline-certificate` and `log/invalid-output`.
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
	'tls/key-of-another',
	'tls/weak-key',
	'tls/unusable-certificate',
	'auth/htpasswd-unreadable',
	'auth/htpasswd-invalid',
]);

/** Returns why a configuration with these diagnostics was refused: `machine` if the causes of all errors are on the machine. */
export function kindOfRefusal(diagnostics: readonly DiagnosticReport[]): LoadFailureKind {
	const errors = diagnostics.filter(({ severity }) => severity === 'error');
	return errors.length > 0 && errors.every(({ code }) => MACHINE_CODES.has(code)) ? 'machine' : 'refused';
}

/** Returns why a process could not start. */
export function kindOfStartFailure({ failure }: StartError): LoadFailureKind {
	if (failure.reason === 'refused') return kindOfRefusal(failure.diagnostics);
	return failure.reason === 'listen' || failure.systemCode !== undefined ? 'machine' : 'refused';
}
