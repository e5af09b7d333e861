/** Requests of worker threads to the main thread, and their replies. */

import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { ClusterAnswer } from '../../compiler/exchange/response-cache.ts';
import type {
	AcmeServerAnswer,
	AcmeServerRequest,
	AcmeServerSettings,
} from '../../compiler/modules/directives/acme-server/acme-server-handler.ts';
import type { ClusterConsultation } from '../cache/cluster-messages.ts';
import type { DiskRequest } from '../cache/disk/disk-messages.ts';
import type {
	CertificateRequestedByClient,
	ChallengeAnswer,
	ChallengeQuestion,
} from '../certificates/certificate-feed.ts';
import type { ComputedTask } from '../page-work/do-page-task.ts';
import type { PageTaskReply } from '../page-work/page-work-queue.ts';
import type { AccountFileAnswer, AccountFileQuestion } from '../passwords/account-files.ts';
import type { PasswordAnswer, PasswordCheck } from '../passwords/password-check.ts';
import type { TlsMaterial, TlsMaterialRequest } from '../upstreams/transports/tls-provision.ts';

export type MainThreadRequest =
	| { readonly about: 'password'; readonly check: PasswordCheck }
	/** Cancels a password check whose result is no longer needed. */
	| { readonly about: 'password_withdrawn'; readonly id: string }
	/** Asks for the current version of a file of accounts. */
	| { readonly about: 'account_file'; readonly question: AccountFileQuestion }
	| { readonly about: 'metrics'; readonly format: MetricsFormat }
	/** Asks whether the server is ready. */
	| { readonly about: 'health' }
	/** Runs an expensive template function. */
	| { readonly about: 'page_work'; readonly task: ComputedTask }
	/** Asks the main thread to answer a request that has been made to the ACME server of a site. */
	| { readonly about: 'acme'; readonly request: AcmeServerRequest; readonly settings: AcmeServerSettings }
	/** Looks up the answer to a challenge that another process may have published. */
	| { readonly about: 'challenge'; readonly challenge: ChallengeQuestion }
	/** Asks for the certificates and keys for TLS to upstreams, except those in files. */
	| { readonly about: 'upstream_tls'; readonly material: TlsMaterialRequest }
	/**
	 * Reports the recorded usage of a shared rate-limit table to Redis. If `place`, the index of a counter in the table, is given,
	 * reports immediately, and replies once Redis has counted the usage of this counter or is unavailable.
	 */
	| { readonly about: 'rate_limit'; readonly table: string; readonly place: number | undefined }
	/** Reads or writes the disk of a response cache. */
	| { readonly about: 'cache'; readonly store: string; readonly diskRequest: DiskRequest }
	/** Asks the cluster for a response that the cache of this machine does not have. */
	| { readonly about: 'cluster_cache'; readonly store: string; readonly consultation: ClusterConsultation }
	/** Obtains a certificate that a handshake needs and no thread has. */
	| { readonly about: 'certificate'; readonly certificate: CertificateRequestedByClient };

/** The replies, by the `about` of their requests. */
export interface MainThreadReplies {
	password: PasswordAnswer;
	/** Confirms that the check has been canceled. */
	password_withdrawn: true;
	account_file: AccountFileAnswer;
	/** All metrics as text. */
	metrics: string;
	/** Why the server is not ready; undefined if it is ready. */
	health: string | undefined;
	page_work: PageTaskReply;
	acme: AcmeServerAnswer;
	challenge: ChallengeAnswer | undefined;
	upstream_tls: TlsMaterial;
	/** Confirms that the usage has been counted, or that Redis is unavailable. */
	rate_limit: true;
	/** Confirms that the request has been carried out. */
	cache: true;
	cluster_cache: ClusterAnswer;
	/** True once a certificate for the name has been published. */
	certificate: boolean;
}
