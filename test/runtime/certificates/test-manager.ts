/** Certificate managers with temporary stores, and a sink that records the certificates that a manager publishes. */

import type { AutomationPolicy, CertificatePlan } from '../../../compiler/codegen/plan/certificate-plan.ts';
import type { Settings } from '../../../compiler/document/document.ts';
import type { IssuerSettings } from '../../../compiler/document/tls-settings.ts';
import type {
	CertificateManager,
	CertificateSink,
	ChallengeAnswers,
	PublishedCertificate,
} from '../../../runtime/certificates/certificate-feed.ts';
import { createCertificateManager } from '../../../runtime/certificates/manager/certificate-manager.ts';
import { temporaryFolder } from '../../harness.ts';

/** A certificate sink that records what the worker threads would receive. */
export interface RecordingSink extends CertificateSink {
	/** Current certificates by id. */
	readonly certificates: Map<string, PublishedCertificate>;
	/** Every publication so far, in order. */
	readonly published: PublishedCertificate[];
	/** The challenge responses currently in effect. */
	answers: ChallengeAnswers;
	for(name: string): PublishedCertificate | undefined;
}

export function recordingSink(): RecordingSink {
	const certificates = new Map<string, PublishedCertificate>();
	const published: PublishedCertificate[] = [];
	return {
		certificates,
		published,
		answers: { http01: {}, alpn: {} },
		publish(some) {
			for (const one of some) {
				certificates.set(one.id, one);
				published.push(one);
			}
		},
		drop(ids) {
			for (const id of ids) certificates.delete(id);
		},
		async setChallenges(answers) {
			this.answers = answers;
		},
		for: name => [...certificates.values()].find(({ names }) => names.includes(name)),
	};
}

export interface TestManager {
	readonly manager: CertificateManager;
	readonly sink: RecordingSink;
	/** Process log entries so far. */
	readonly entries: { level: string; logger: string; message: string; fields?: object | undefined }[];
	readonly folder: string;
}

/** Creates a manager with a store in the given folder, or else in a temporary folder. */
export function testManager(options: { folder?: string; now?: () => number; sink?: RecordingSink } = {}): TestManager {
	const folder = options.folder ?? temporaryFolder();
	const sink = options.sink ?? recordingSink();
	const entries: TestManager['entries'] = [];
	const manager = createCertificateManager(
		{
			sink,
			workingDirectory: folder,
			environment: { ...process.env, SVC_TLS_STORE: folder },
			log: (level, logger, message, fields) => entries.push({ level, logger, message, fields }),
		},
		options.now ? { now: options.now } : {},
	);
	return { manager, sink, entries, folder };
}

export function planOfPolicies(...policies: AutomationPolicy[]): CertificatePlan {
	return { policies, authorities: ['local'], http_port: 80, https_port: 443 };
}

export function policyForNames(
	subjects: readonly string[],
	issuers: readonly IssuerSettings[] = [{ issuer: 'internal' }],
	more: Partial<AutomationPolicy> = {},
): AutomationPolicy {
	return { subjects, issuers, ...more };
}

/** Prepares a plan and activates it. */
export async function serveDocument(
	{ manager }: TestManager,
	plan: CertificatePlan,
	settings: Settings = {},
): Promise<void> {
	await manager.prepare(plan, settings);
	manager.activate();
}

export { until as eventually } from '../../harness.ts';
