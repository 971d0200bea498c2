// SPDX-License-Identifier: GPL-2.0

//! The superblocks of a filesystem type, and what is done to each from time to time.
//!
//! # Lock order
//!
//! The list of [`Supers`]; or the lock of a [`Link`], in which the work of a superblock runs.

use crate::{
    link::Link,
    super_block::{
        Operations,
        SuperBlock, //
    },
    workqueue::{
        DelayedWork,
        Work, //
    },
    FileSystem, //
};
use kernel::{
    prelude::*,
    static_lock_class,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    }, //
};

/// Runs [`Operations::maintain`] for a superblock.
struct Maintenance<T: FileSystem>(Arc<Link<T>>);

impl<T: FileSystem> Work for Maintenance<T> {
    fn run(&self) -> Option<u32> {
        // Nobody kills a kernel thread.
        let sb = self.0.get().ok().flatten()?;
        T::SuperOps::maintain(&sb)
    }
}

/// The superblocks of a filesystem type that have a [`Link`].
#[pin_data]
pub struct Supers<T: FileSystem> {
    /// Each from before its work is started until before it is stopped and the link is cut.
    #[pin]
    list: Mutex<KVec<Arc<DelayedWork<Maintenance<T>>>>>,
}

impl<T: FileSystem> Supers<T> {
    /// None yet. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                list <- new_mutex!(KVec::new(), "supers"),
            }),
            GFP_KERNEL,
        )
    }

    /// Has [`Operations::maintain`] called for all superblocks at once, by kernel threads. Sleeps.
    pub fn maintain_all(&self) {
        self.list.lock().iter().for_each(|work| work.start_now());
    }

    /// As [`maintain_all`](Self::maintain_all), for one.
    pub(crate) fn maintain(&self, sb: &SuperBlock<T>) {
        if let Some(work) = find(&self.list.lock(), sb) {
            work.start_now();
        }
    }

    /// Makes a way to `sb`, which [`remove`](Self::remove) cuts, and begins to maintain it. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn add(&self, sb: &SuperBlock<T>) -> Result<Arc<Link<T>>> {
        let link = Link::new(sb)?;
        let work = DelayedWork::new(
            Maintenance(link.clone()),
            c"maintenance",
            static_lock_class!(),
            static_lock_class!(),
        )?;
        let mut list = self.list.lock();
        list.push(work.clone(), GFP_KERNEL)?;
        work.start_now();
        Ok(link)
    }

    /// Ends the maintenance of `sb` and cuts all ways to it, once nobody is on them. Sleeps.
    pub(crate) fn remove(&self, sb: &SuperBlock<T>) {
        loop {
            let mut list = self.list.lock();
            let Some(work) = find(&list, sb).cloned() else {
                return;
            };
            list.retain(|other| !Arc::ptr_eq(other, &work));
            drop(list);
            work.stop();
            work.data().0.cut();
        }
    }
}

/// The work of `sb`, which is not cut while the list is locked.
fn find<'a, T: FileSystem>(
    list: &'a [Arc<DelayedWork<Maintenance<T>>>],
    sb: &SuperBlock<T>,
) -> Option<&'a Arc<DelayedWork<Maintenance<T>>>> {
    list.iter().find(|work| work.data().0.leads_to(sb))
}
