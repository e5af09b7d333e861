/** One certificate's OCSP status. */
import type { LabelledCounter } from './certificate-metrics.ts';
import type { ManagedCertificate } from './managed-certificate.ts';
import type { StaplerSurroundings } from './status-stapler.ts';

/** Refreshes. */
export async function refreshStatus(
	_e: ManagedCertificate,
	_a: StaplerSurroundings,
	_c: LabelledCounter,
): Promise<void> {}
