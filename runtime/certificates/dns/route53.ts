/** The DNS provider `route53`. Its API replaces whole record sets, so each change reads a set, modifies it and writes it back. */
import { AwsClient } from 'aws4fetch';
import { IssueError } from '../issuer.ts';
import { fetchApiText } from './api-request.ts';
import type { ChallengeRecord, DnsProvider } from './dns-provider.ts';

const API_VERSION = '2013-04-01';

/** Creates the provider. Credentials that are missing from the settings are taken from `environment`. */
export function route53Provider(
	settings: { readonly [setting: string]: unknown },
	environment: { readonly [name: string]: string | undefined },
): DnsProvider {
	return new Route53(settings, environment);
}

class Route53 implements DnsProvider {
	readonly #client: AwsClient;
	readonly #endpoint: string;
	readonly #zoneId: string | undefined;
	/** Settles when the latest change has ended. The next change waits for that, because changes must not overlap. */
	#lastChange: Promise<unknown> = Promise.resolve();

	constructor(
		settings: { readonly [setting: string]: unknown },
		environment: { readonly [name: string]: string | undefined },
	) {
		const settingOrVariable = (name: string, variable: string): string | undefined => {
			const value = settings[name];
			return typeof value === 'string' && value !== '' ? value : environment[variable];
		};
		const sessionToken = settingOrVariable('session_token', 'AWS_SESSION_TOKEN');
		this.#client = new AwsClient({
			accessKeyId: settingOrVariable('access_key_id', 'AWS_ACCESS_KEY_ID') ?? '',
			secretAccessKey: settingOrVariable('secret_access_key', 'AWS_SECRET_ACCESS_KEY') ?? '',
			...(sessionToken === undefined ? {} : { sessionToken }),
			service: 'route53',
			region: settingOrVariable('region', 'AWS_REGION') ?? 'us-east-1',
		});
		this.#endpoint = String(settings.endpoint ?? 'https://route53.amazonaws.com').replace(/\/$/, '');
		this.#zoneId = typeof settings.hosted_zone_id === 'string' ? settings.hosted_zone_id : undefined;
	}

	async add(record: ChallengeRecord, signal: AbortSignal): Promise<() => Promise<void>> {
		const zoneId = this.#zoneId ?? (await this.#findZone(record.zone, signal));
		await this.#changeValues(zoneId, record, values =>
			values.includes(record.value) ? values : [...values, record.value],
		);
		return () => this.#changeValues(zoneId, record, values => values.filter(value => value !== record.value));
	}

	async #findZone(zoneName: string, signal: AbortSignal): Promise<string> {
		const responseXml = await this.#sendRequest(
			'GET',
			`hostedzonesbyname?dnsname=${encodeURIComponent(zoneName)}`,
			undefined,
			signal,
		);
		for (const [, zone] of responseXml.matchAll(/<HostedZone>([\s\S]*?)<\/HostedZone>/g)) {
			const id = /<Id>(?:\/hostedzone\/)?([A-Za-z0-9]+)<\/Id>/.exec(zone!)?.[1];
			const isPrivate = /<PrivateZone>true<\/PrivateZone>/.test(zone!);
			if (id !== undefined && !isPrivate && zone!.includes(`<Name>${zoneName}.</Name>`)) return id;
		}
		throw new IssueError('dns/no-zone', `The Route 53 account has no public zone \`${zoneName}\`.`);
	}

	#changeValues(zoneId: string, record: ChallengeRecord, edit: (values: string[]) => string[]): Promise<void> {
		const change = this.#lastChange.then(async () => {
			const currentValues = await this.#readValues(zoneId, record.name);
			const newValues = edit(currentValues);
			if (newValues === currentValues || (currentValues.length === 0 && newValues.length === 0)) return;
			await this.#writeValues(
				zoneId,
				record,
				newValues.length > 0 ? 'UPSERT' : 'DELETE',
				newValues.length > 0 ? newValues : currentValues,
			);
		});
		this.#lastChange = change.catch(() => {});
		return change;
	}

	async #readValues(zoneId: string, name: string): Promise<string[]> {
		const query = `name=${encodeURIComponent(name)}&type=TXT&maxitems=1`;
		const responseXml = await this.#sendRequest('GET', `hostedzone/${encodeURIComponent(zoneId)}/rrset?${query}`);
		const recordSet = /<ResourceRecordSet>([\s\S]*?)<\/ResourceRecordSet>/.exec(responseXml)?.[1] ?? '';
		if (!recordSet.includes(`<Name>${name}.</Name>`) || !recordSet.includes('<Type>TXT</Type>')) return [];
		return [...recordSet.matchAll(/<Value>([\s\S]*?)<\/Value>/g)].map(([, value]) =>
			value!.replaceAll('&quot;', '"').replace(/^"(.*)"$/, '$1'),
		);
	}

	async #writeValues(
		zoneId: string,
		{ name, ttl }: ChallengeRecord,
		action: 'UPSERT' | 'DELETE',
		values: readonly string[],
	): Promise<void> {
		const records = values
			.map(value => `<ResourceRecord><Value>&quot;${escapeXml(value)}&quot;</Value></ResourceRecord>`)
			.join('');
		const body = `<?xml version="1.0" encoding="UTF-8"?><ChangeResourceRecordSetsRequest xmlns="https://route53.amazonaws.com/doc/${API_VERSION}/"><ChangeBatch><Changes><Change><Action>${action}</Action><ResourceRecordSet><Name>${escapeXml(name)}.</Name><Type>TXT</Type><TTL>${ttl}</TTL><ResourceRecords>${records}</ResourceRecords></ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`;
		await this.#sendRequest('POST', `hostedzone/${encodeURIComponent(zoneId)}/rrset/`, body);
	}

	async #sendRequest(method: 'GET' | 'POST', path: string, body?: string, signal?: AbortSignal): Promise<string> {
		const url = `${this.#endpoint}/${API_VERSION}/${path}`;
		const signedRequest = await this.#client.sign(url, {
			method,
			...(body === undefined ? {} : { body, headers: { 'content-type': 'application/xml' } }),
		});
		const headers = Object.fromEntries(signedRequest.headers);
		return fetchApiText({ method, url, headers, body, provider: 'route53', explain: extractErrorMessage, signal });
	}
}

function extractErrorMessage(text: string): string | undefined {
	return /<Message>([\s\S]*?)<\/Message>/.exec(text)?.[1];
}

function escapeXml(text: string): string {
	return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
