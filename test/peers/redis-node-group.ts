/** A real Redis Cluster: masters that share the slots, and replicas that are promoted if a master fails. */
import { spawnSync } from 'node:child_process';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { freePorts, until } from '../harness.ts';
import { type RedisCertificate, RedisServer } from './redis-server.ts';

const MASTER_COUNT = 3;

interface NodeGroupOptions {
	/** Number of replicas of each master. */
	readonly replicas?: number;
	/** Present if the nodes accept only TLS. */
	readonly certificate?: RedisCertificate;
	/** Milliseconds without an answer after which the other nodes regard a node as failed. */
	readonly nodeTimeoutMs?: number;
	readonly password?: string;
}

/** What a node knows about a node of the cluster, which may be itself. */
interface NodeFacts {
	readonly server: RedisServer;
	readonly isMaster: boolean;
	readonly hasFailed: boolean;
	/** The slots of a master, as the first and the last slot of each range. */
	readonly ranges: readonly (readonly [number, number])[];
}

/** Three masters with the same number of replicas each. */
export class NodeGroup {
	readonly nodes: readonly RedisServer[];
	readonly #killed = new Set<RedisServer>();

	private constructor(nodes: readonly RedisServer[]) {
		this.nodes = nodes;
	}

	static async start({
		replicas = 0,
		certificate,
		nodeTimeoutMs = 10_000,
		password,
	}: NodeGroupOptions = {}): Promise<NodeGroup> {
		const ports = await freePorts(2 * MASTER_COUNT * (1 + replicas));
		const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)];
		// With the factor 0, a replica may replace its master however long ago it lost the connection to it, which may be long on a
		// busy machine.
		args.push('--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0');
		if (certificate) args.push('--tls-cluster', 'yes');
		if (password !== undefined) args.push('--requirepass', password, '--masterauth', password);
		const nodes = await Promise.all(
			Array.from({ length: ports.length / 2 }, (_, i) =>
				RedisServer.start([...args, '--cluster-port', String(ports[2 * i + 1])], ports[2 * i], certificate),
			),
		);
		const addresses = nodes.map(node => node.address);
		const created = spawnSync(
			'redis-cli',
			[
				...(certificate?.cliOptions ?? []),
				...['--cluster', 'create', ...addresses, '--cluster-replicas', String(replicas), '--cluster-yes'],
			],
			{
				encoding: 'utf8',
				env: { ...process.env, ...(password === undefined ? {} : { REDISCLI_AUTH: password }) },
			},
		);
		if (created.status !== 0) throw new Error(created.stdout + created.stderr);
		const group = new NodeGroup(nodes);
		await until('all nodes to be up and known to each other, and all replicas to have a copy', () =>
			nodes.every(node => {
				if (!node.cli('cluster', 'info').includes('cluster_state:ok')) return false;
				// A master refuses to hand over its slots to a node that it does not yet know as its replica.
				if (group.#factsFrom(node).filter(({ isMaster }) => !isMaster).length !== MASTER_COUNT * replicas) return false;
				const replication = node.cli('info', 'replication');
				return replication.includes('role:master') || replication.includes('master_link_status:up');
			}),
		);
		return group;
	}

	get settings(): ClusterSettings {
		const [address, ...others] = this.nodes.map(node => node.address) as [string, ...string[]];
		return { address, other_addresses: others, mode: 'cluster' };
	}

	/** The arguments of the option `cluster`, and the lines in its block. */
	get configuration(): { readonly addresses: string; readonly lines: readonly string[] } {
		return { addresses: this.nodes.map(node => `redis://${node.address}`).join(' '), lines: ['mode cluster'] };
	}

	/** Asks the running nodes which master serves a slot. Returns undefined if none does. */
	ownerOf(slot: number): RedisServer | undefined {
		const asked = this.nodes.find(node => !this.#killed.has(node))!;
		return this.#factsFrom(asked).find(
			({ isMaster, hasFailed, ranges }) =>
				isMaster && !hasFailed && ranges.some(([first, last]) => slot >= first && slot <= last),
		)?.server;
	}

	/** Returns the replica of a master. */
	replicaOf(master: RedisServer): RedisServer | undefined {
		return this.nodes.find(node => node.cli('info', 'replication').includes(`master_port:${master.port}\r`));
	}

	/** Kills the master of a slot. Resolves to the replica that has taken its place, once every node knows it. */
	async failover(slot: number): Promise<RedisServer> {
		const master = this.ownerOf(slot)!;
		await master.untilReplicated();
		await this.kill(master);
		return this.untilReplaced(master, slot);
	}

	/** Resolves to the node that has taken the place of a master, once every other node knows it and serves again. */
	async untilReplaced(master: RedisServer, slot: number): Promise<RedisServer> {
		const others = this.nodes.filter(node => node !== master && !this.#killed.has(node));
		let owner: RedisServer | undefined;
		await until('a replica to take over', () => {
			const owners = others.map(node =>
				this.#factsFrom(node).find(
					({ isMaster, ranges }) => isMaster && ranges.some(([first, last]) => slot >= first && slot <= last),
				),
			);
			owner = owners[0]?.server;
			return (
				owner !== undefined &&
				owner !== master &&
				owners.every(facts => facts?.server === owner) &&
				others.every(node => node.cli('cluster', 'info').includes('cluster_state:ok'))
			);
		});
		return owner!;
	}

	async kill(node: RedisServer): Promise<void> {
		this.#killed.add(node);
		await node.kill();
	}

	async close(): Promise<void> {
		for (const node of this.nodes) await node.kill();
	}

	/** Returns what a node knows about all nodes. */
	#factsFrom(asked: RedisServer): NodeFacts[] {
		return asked
			.cli('cluster', 'nodes')
			.trim()
			.split('\n')
			.flatMap(line => {
				const [, address = '', flags = '', , , , , , ...slots] = line.split(' ');
				const server = this.nodes.find(node => address.startsWith(`${node.address}@`));
				if (!server) return [];
				const ranges = slots
					.filter(range => !range.startsWith('['))
					.map(range => {
						const [first, last = first] = range.split('-').map(Number) as [number, number?];
						return [first, last] as const;
					});
				const flagNames = flags.split(',');
				const [isMaster, hasFailed] = [flagNames.includes('master'), flagNames.includes('fail')];
				return [{ server, isMaster, hasFailed, ranges }];
			});
	}
}
