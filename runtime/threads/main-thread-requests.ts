/** What data-plane threads ask the main thread, and what it answers. */

import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { DiskErrand } from '../cache/disk/disk-messages.ts';
import type { ComputedTask } from '../page-work/do-page-task.ts';
import type { QueuedAnswer } from '../page-work/page-work-queue.ts';
import type { PasswordAnswer, PasswordCheck } from '../passwords/password-check.ts';
import type { CertificateQuestion, ChallengeAnswer, ChallengeQuestion } from '../tls/certificate-feed.ts';
import type { TlsProvided, TlsWanted } from '../upstreams/transports/tls-provision.ts';

export type MainThreadQuestion =
	| { readonly about: 'password'; readonly check: PasswordCheck }
	/** Nobody waits for the answer to that check any more. */
	| { readonly about: 'password_withdrawn'; readonly id: string }
	| { readonly about: 'metrics'; readonly format: MetricsFormat }
	/** Work for a page. */
	| { readonly about: 'page_work'; readonly task: ComputedTask }
	/** A request to an ACME server that a site serves. */
	| { readonly about: 'acme'; readonly request: AcmeServerRequest; readonly settings: AcmeServerSettings }
	/** A challenge that another process may have put up. */
	| { readonly about: 'challenge'; readonly wanted: ChallengeQuestion }
	/** What TLS to upstreams needs and no file holds. */
	| { readonly about: 'upstream_tls'; readonly wanted: TlsWanted }
	/** Something to do for a response cache with a disk. */
	| { readonly about: 'cache'; readonly store: string; readonly errand: DiskErrand }
	/** A certificate that no thread has is wanted for a handshake. */
	| { readonly about: 'certificate'; readonly wanted: CertificateQuestion };

/** The answer to each. */
export interface MainThreadAnswers {
	password: PasswordAnswer;
	/** It is withdrawn. */
	password_withdrawn: true;
	/** All metrics as text. */
	metrics: string;
	page_work: QueuedAnswer;
	acme: AcmeServerAnswer;
	challenge: ChallengeAnswer | undefined;
	upstream_tls: TlsProvided;
	/** It is done. */
	cache: true;
	/** True once one has been published for the name. */
	certificate: boolean;
}
