/** Answers the requests that worker threads send to the main thread, by passing each to the component responsible for it. */
import type { Settings } from '../../compiler/document/document.ts';
import type { SharedLimits } from '../cluster/shared-limits.ts';
import { scrapeToString } from '../metrics/scrape-memory.ts';
import type { PageWorkQueue } from '../page-work/page-work-queue.ts';
import type { AccountFiles } from '../passwords/account-files.ts';
import type { PasswordQueue } from '../passwords/password-queue.ts';
import type { TlsControl } from '../tls/tls-control.ts';
import type { MainThreadReplies, MainThreadRequest } from '../worker/main-thread-requests.ts';
import type { CacheRegistry } from './cache-registry.ts';
import type { RuntimeMetrics } from './runtime-metrics.ts';

/** The components of the main thread that answer requests. */
export interface MainThreadServices {
	readonly passwords: PasswordQueue;
	readonly accountFiles: AccountFiles;
	readonly pageWork: PageWorkQueue;
	readonly metrics: RuntimeMetrics;
	readonly tls: TlsControl;
	readonly caches: CacheRegistry;
	/** The limits that the machines of the cluster share; undefined outside of a cluster. */
	readonly sharedLimits: SharedLimits | undefined;
	/** Why the server is not ready; undefined if it is ready. */
	readonly unreadyReason: string | undefined;
	/** Settings of the running document. */
	readonly settings: Settings;
}

/** Answers one request of a worker thread. */
export async function answerThreadRequest(
	request: MainThreadRequest,
	{
		passwords,
		accountFiles,
		pageWork,
		metrics,
		tls,
		caches,
		sharedLimits,
		unreadyReason,
		settings,
	}: MainThreadServices,
): Promise<MainThreadReplies[keyof MainThreadReplies]> {
	switch (request.about) {
		case 'password':
			return passwords.verify(request.check);
		case 'password_withdrawn':
			passwords.withdraw(request.id);
			return true;
		case 'account_file':
			return accountFiles.answer(request.question);
		case 'metrics':
			return scrapeToString(await metrics.render(request.format));
		case 'health':
			return unreadyReason;
		case 'page_work':
			return pageWork.run(request.task);
		case 'challenge':
			return tls.answerChallenge(request.challenge);
		case 'certificate':
			return tls.obtain(request.certificate);
		case 'upstream_tls':
			return tls.provideUpstreams(request.material);
		case 'cache':
			return caches.runDiskRequest(request.store, request.diskRequest);
		case 'cluster_cache':
			return caches.consultCluster(request.store, request.consultation);
		case 'rate_limit':
			await sharedLimits?.reportUsage(request.table, request.place);
			return true;
		case 'acme':
			return tls.answerAcme(request.request, request.settings, settings);
	}
}
