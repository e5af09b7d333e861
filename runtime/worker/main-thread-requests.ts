/** Requests of worker threads to the main thread, and their replies. */

import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { DiskErrand } from '../cache/disk/disk-messages.ts';
import type { CertificateQuestion, ChallengeAnswer, ChallengeQuestion } from '../certificates/certificate-feed.ts';
import type { ComputedTask } from '../page-work/do-page-task.ts';
import type { QueuedAnswer } from '../page-work/page-work-queue.ts';
import type { PasswordAnswer, PasswordCheck } from '../passwords/password-check.ts';
import type { TlsProvided, TlsWanted } from '../upstreams/transports/tls-provision.ts';

export type MainThreadQuestion =
	| { readonly about: 'password'; readonly check: PasswordCheck }
	/** The result of that check is no longer needed. */
	| { readonly about: 'password_withdrawn'; readonly id: string }
	| { readonly about: 'metrics'; readonly format: MetricsFormat }
	/** An expensive template function. */
	| { readonly about: 'page_work'; readonly task: ComputedTask }
	/** A request to an ACME server that a site serves. */
	| { readonly about: 'acme'; readonly request: AcmeServerRequest; readonly settings: AcmeServerSettings }
	/** A challenge that another process may have published. */
	| { readonly about: 'challenge'; readonly wanted: ChallengeQuestion }
	/** TLS material for upstreams that is not in files. */
	| { readonly about: 'upstream_tls'; readonly wanted: TlsWanted }
	/** Work for a response cache with a disk. */
	| { readonly about: 'cache'; readonly store: string; readonly errand: DiskErrand }
	/** A handshake needs a certificate that no thread has. */
	| { readonly about: 'certificate'; readonly wanted: CertificateQuestion };

/** The reply to each. */
export interface MainThreadAnswers {
	password: PasswordAnswer;
	/** It has been withdrawn. */
	password_withdrawn: true;
	/** All metrics as text. */
	metrics: string;
	page_work: QueuedAnswer;
	acme: AcmeServerAnswer;
	challenge: ChallengeAnswer | undefined;
	upstream_tls: TlsProvided;
	/** It has been done. */
	cache: true;
	/** True once a certificate has been published for the name. */
	certificate: boolean;
}
