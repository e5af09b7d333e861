/** The DNS provider `digitalocean`. */
import { IssueError } from '../issuer.ts';
import { fetchApiJson, fetchApiText } from './api-request.ts';
import { type DnsProvider, relativeName } from './dns-provider.ts';

export function digitaloceanProvider(settings: { readonly [setting: string]: unknown }): DnsProvider {
	const endpoint = String(settings.endpoint ?? 'https://api.digitalocean.com').replace(/\/$/, '');
	const commonOptions = {
		provider: 'digitalocean',
		headers: { authorization: `Bearer ${String(settings.auth_token ?? '')}`, 'content-type': 'application/json' },
		explain: extractErrorMessage,
	};
	return {
		async add(record, signal) {
			const recordsUrl = `${endpoint}/v2/domains/${encodeURIComponent(record.zone)}/records`;
			const body = { type: 'TXT', name: relativeName(record), data: record.value, ttl: Math.max(30, record.ttl) };
			const createdRecord = await fetchApiJson({
				...commonOptions,
				method: 'POST',
				url: recordsUrl,
				body: JSON.stringify(body),
				signal,
			});
			const recordId = (createdRecord.domain_record as { id?: unknown } | undefined)?.id;
			if (typeof recordId !== 'number' && typeof recordId !== 'string') {
				throw new IssueError('dns/refused', 'The API of digitalocean did not create the record.');
			}
			return async () => {
				await fetchApiText({
					...commonOptions,
					method: 'DELETE',
					url: `${recordsUrl}/${encodeURIComponent(String(recordId))}`,
				});
			};
		},
	};
}

function extractErrorMessage(text: string): string | undefined {
	try {
		return String((JSON.parse(text) as { message?: unknown }).message ?? '');
	} catch {
		return undefined;
	}
}
