//! What is dispatched where, and how that is exchanged while the daemon runs: a new roster is made beside the one
//! in force, the claimer takes it before its next claim, and deliveries under way keep what they began with.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::pauses::Pauses;
use super::route::Route;
use super::slots::Limit;
use super::{Catalogue, Memory, Unusable};
use crate::core::target::{Rate, Target};
use crate::destination::Destination;

/// A catalogue made ready. Destinations and operations keep their numbers for as long as the daemon lives.
pub struct Roster {
    /// Where each operation's actions go.
    pub routes: Vec<Arc<Route>>,
    /// Of each route.
    pub limits: Vec<Limit>,
    /// Destinations by number, also those that are no more.
    pub names: Vec<String>,
    /// The most requests at once, by the number of the destination; 0 for one that is no more.
    pub destination_max: Vec<u32>,
    /// How often requests may leave, by the number of the destination.
    pub destination_rates: Vec<Option<Rate>>,
    /// The same by the number of the operation: what its contract wants between two.
    pub operation_rates: Vec<Option<Rate>>,
    /// How many destinations there are.
    pub destinations: usize,
    /// Those that are not as they were before.
    pub changed: Vec<usize>,
    /// How long closed actions of each operation are remembered.
    pub memory: Vec<Memory>,
}

/// Names, each with its number.
#[derive(Clone, Default)]
struct Numbers(Vec<String>);

impl Numbers {
    fn of(&mut self, name: &str) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }
}

/// A destination as it is in force.
#[derive(Clone)]
struct Client {
    target: Target,
    number: usize,
    destination: Arc<Destination>,
}

/// Makes rosters.
struct Maker {
    destinations: Numbers,
    operations: Numbers,
    clients: BTreeMap<String, Client>,
    pauses: Arc<Pauses>,
}

impl Maker {
    /// A destination that is as it was keeps its connections. Where one cannot be used nothing changes.
    fn make(&mut self, catalogue: Catalogue) -> Result<Roster, Unusable> {
        let mut numbers = self.destinations.clone();
        let (mut clients, mut changed) = (BTreeMap::new(), Vec::new());
        for (name, target) in catalogue.targets {
            let number = numbers.of(&name);
            let known = self.clients.get(&name).filter(|known| known.target == target);
            let client = match known {
                Some(known) => known.clone(),
                None => {
                    let destination = Destination::new(target.clone())
                        .map_err(|cause| Unusable { destination: name.clone(), cause })?;
                    changed.push(number);
                    Client { target, number, destination: Arc::new(destination) }
                }
            };
            clients.insert(name, client);
        }
        self.destinations = numbers;
        self.clients = clients;
        let mut destination_max = vec![0; self.destinations.0.len()];
        let mut destination_rates = vec![None; self.destinations.0.len()];
        for client in self.clients.values() {
            destination_max[client.number] = client.target.max_in_flight;
            destination_rates[client.number] = client.target.rate;
        }
        let (mut routes, mut limits) = (Vec::new(), Vec::new());
        let mut gaps = Vec::new();
        for (operation, at_once) in catalogue.operations {
            // The configuration refuses an operation without its destination before it gets here.
            let Some(client) = self.clients.get(&operation.target) else { continue };
            let contract = &operation.terms.contract;
            let asks = contract.lookup.is_some() || contract.cancel.is_some();
            let number = self.operations.of(&operation.name);
            gaps.push((number, contract.pace.min_gap));
            limits.push(Limit {
                number,
                destination: client.number,
                operation_max: at_once.requests,
                tenant_max: at_once.of_one_tenant,
                asks,
            });
            routes.push(Arc::new(Route {
                operation,
                destination: Arc::clone(&client.destination),
                destination_index: client.number,
                operation_number: number,
                host_from_data: client.target.host_from_data(),
                pauses: Arc::clone(&self.pauses),
            }));
        }
        let mut operation_rates = vec![None; self.operations.0.len()];
        for (number, gap) in gaps {
            operation_rates[number] = gap.map(|gap| Rate { count: 1, per: gap, burst: 1 });
        }
        self.pauses.know(self.destinations.0.len(), self.operations.0.len());
        let destinations = self.clients.len();
        let names = self.destinations.0.clone();
        Ok(Roster {
            routes,
            limits,
            names,
            destination_max,
            destination_rates,
            operation_rates,
            destinations,
            changed,
            memory: catalogue.memory,
        })
    }
}

/// Exchanges what is dispatched while the daemon runs.
pub struct Reloader {
    maker: Maker,
    rosters: watch::Sender<Arc<Roster>>,
}

/// The first roster, and who makes the next ones.
pub(super) fn begin(
    catalogue: Catalogue,
    pauses: Arc<Pauses>,
) -> Result<(watch::Receiver<Arc<Roster>>, Reloader), Unusable> {
    let (destinations, operations) = (Numbers::default(), Numbers::default());
    let mut maker = Maker { destinations, operations, clients: BTreeMap::new(), pauses };
    let (rosters, roster) = watch::channel(Arc::new(maker.make(catalogue)?));
    Ok((roster, Reloader { maker, rosters }))
}

impl Reloader {
    /// From the next claim on, this is dispatched. Deliveries under way go on as they began. A destination that was
    /// changed while it is paused is probed at once.
    ///
    /// # Errors
    /// Where a destination cannot be used; then everything stays as it is.
    pub fn exchange(&mut self, catalogue: Catalogue) -> Result<(), Unusable> {
        let roster = Arc::new(self.maker.make(catalogue)?);
        self.rosters.send_replace(Arc::clone(&roster));
        // A probe that is claimed in this instant may still go the old way; the next one does not.
        roster.changed.iter().for_each(|destination| self.maker.pauses.probe_soon(*destination));
        Ok(())
    }
}
